// pure
import { nearest } from './schema-error.ts'

/** What a rule of the shipped policy means and what a person does about it: `puzzlectl policy explain RULE`. */
export interface RuleText {
  weight: string
  means: string
  help: string
}

const text = (weight: string, means: string, help: string): RuleText => ({ weight, means, help })

/** Every rule but those of the catalogue (`vector/…`), which carries its own reasons. */
export const RULES: Readonly<Record<string, RuleText>> = {
  'agent-failed': text(
    'hold',
    'The agent ended with an error or was ended.',
    'Look at what it left half done; `gate.onAgentFailure: gate` lets the policy decide alone.',
  ),
  capabilities: text(
    'deny, hold with gate.allowSetuid',
    'A file carries file capabilities or another security attribute.',
    'Set it by hand after the commit.',
  ),
  'contents-partly-read': text(
    'warn',
    'Some files are larger than what is examined.',
    'The reviewer sees which.',
  ),
  'contents-unread': text(
    'warn',
    'There were no contents to examine, as for a changeset from a file.',
    'At a real gate contents are examined.',
  ),
  'deceptive-name': text(
    'hold',
    'A name has control, direction or invisible characters.',
    'It is shown with escapes; rename it.',
  ),
  executable: text('warn', 'A file becomes executable.', ''),
  'history-deleted': text('hold', 'The repository itself is deleted.', 'Reject, unless that was the task.'),
  'input-index': text(
    'deny',
    'The input document contradicts itself.',
    'A defect, or a hand-written document: see docs/policy.md.',
  ),
  'input-version': text(
    'deny',
    'The input document has another version than the policy.',
    'Use policy and program of one release.',
  ),
  'many-bytes': text(
    'hold',
    'More bytes than `gate.maxBytes`.',
    'Commit a part, or raise the limit in a profile.',
  ),
  'many-files': text(
    'hold',
    'More paths than `gate.maxFiles`.',
    'Commit a part, or raise the limit in a profile.',
  ),
  'many-names': text(
    'hold',
    'Symlinks of the changeset give a file more names than can be judged.',
    'Reject; nobody needs that.',
  ),
  'mass-deletion': text('hold', 'More deletions than `gate.maxDeletions`.', 'See `puzzlectl diff --stat`.'),
  'name-collision': text(
    'hold',
    'Two names differ only in case or form; on some file systems they are one.',
    'Rename one of them.',
  ),
  'name-not-text': text('hold', 'A name is not UTF-8.', 'It is shown with escapes.'),
  'native-executable': text(
    'hold, warn in build directories',
    'Machine code, which no reviewer can read.',
    'Build it outside of the branch, from reviewed sources.',
  ),
  owner: text('hold', 'Another owner or group than the requester and the old file.', ''),
  'planted-repository': text(
    'hold',
    'A bare repository inside the tree: git takes configuration and hooks from there.',
    'Reject, unless it is a test fixture.',
  ),
  'policy-failed': text(
    'deny',
    'A policy gave no decision: it is missing, broken, too slow or too greedy.',
    'Run `puzzlectl policy list`; the message says what happened.',
  ),
  'profile-deny': text('deny', '`gate.denyPaths` of the profile names the target.', ''),
  'profile-hold': text('hold', '`gate.holdPaths` of the profile names the target.', ''),
  'queued-request': text(
    'hold',
    'A request waits to be sent when the changeset is committed.',
    'Look at it: `puzzlectl queue`.',
  ),
  setuid: text(
    'deny, hold with gate.allowSetuid',
    'A file would run with the rights of its owner or group.',
    'Set the bit by hand after the commit.',
  ),
  'symlink-outside': text('hold, warn for installed programs', 'A link leads out of the base.', ''),
  'system-path': text('hold', 'The target belongs to the system, not to a project.', ''),
  unread: text('hold', 'A content could not be read.', 'The message says why.'),
  'unread-executable': text(
    'hold',
    'An executable whose content was not examined.',
    'It is too large, or contents were not available.',
  ),
  'world-writable': text('hold', 'Everybody on the machine could write it.', ''),
  'changeset/*': text(
    'deny',
    'What the diff found: devices, fifos, sockets, forged overlay attributes.',
    'Such an entry cannot be committed; drop it with --except.',
  ),
  'content/private-key': text(
    'hold',
    'Looks like a private key.',
    'Remove it, and replace the key if it is real.',
  ),
  'content/access-token': text(
    'hold',
    'Looks like a token of a known service.',
    'Remove it, and revoke the token if it is real.',
  ),
  'content/password-in-url': text('hold', 'A URL with a password.', ''),
  'content/high-entropy': text('hold', 'Encrypted or packed data of no known format.', ''),
  'content/encoded-blob': text('hold', 'A long run of base64 or hex in a text.', ''),
  'content/long-line': text('warn', 'A line too long to be read.', ''),
  'content/direction-control': text(
    'hold',
    'Characters that change the direction of text: what is read is not what runs.',
    '',
  ),
  'content/invisible-text': text('hold', 'Characters that nobody sees, some of which models read.', ''),
  'content/terminal-escape': text('hold', 'Control characters that a terminal obeys.', ''),
  'content/lockfile-host': text('hold', 'Packages would come from a place that is not the usual index.', ''),
  'content/lockfile-plain-http': text('hold', 'Packages would come without encryption.', ''),
  'content/lockfile-integrity': text('hold', 'A package without a digest.', ''),
  'content/lifecycle-script': text('hold', 'A script that package managers run on install.', ''),
  'content/script-changed': text('warn', 'A script of package.json is new or changed.', ''),
  'content/git-config-command': text(
    'hold',
    'A key of git’s configuration that can run a command, or that is not known to be harmless.',
    '',
  ),
  'content/git-config-remote': text('hold', 'A remote leads elsewhere than before.', ''),
  'content/git-attributes-driver': text('hold', 'A filter, diff or merge driver that is not built in.', ''),
  'content/git-attributes-hidden': text('hold', 'Source files are taken out of diffs.', ''),
  'content/pipe-to-shell': text('warn', 'A download is piped into a shell.', ''),
  'content/unreadable': text('hold', 'A file is not of the format that its name says.', ''),
  'action/*': text(
    'as the action policy says',
    'A rule of /etc/puzzled/actions.yaml: a tier, a limit, a window, the blast radius.',
    'The message is the rule’s own reason.',
  ),
}

/** The text of a rule; a family (`changeset/*`) answers for its members. */
export const ruleText = (rule: string): RuleText | undefined =>
  Object.hasOwn(RULES, rule) ? RULES[rule] : RULES[`${rule.split('/', 1)[0]}/*`]

/** The rule that was probably meant. */
export const nearestRule = (rule: string, vectorIds: readonly string[]): string | undefined =>
  nearest(rule, [...Object.keys(RULES), ...vectorIds.map((id) => `vector/${id}`)])
