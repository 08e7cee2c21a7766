import { COMMON_OPTIONS, type Verb } from '../../ctl/verb.ts'
import { VERBS } from '../../ctl/verbs.ts'
import { ERRORS } from '../../daemon/contract/errors.ts'
import { example, heading, indented, item, page, prose, seeAlso, subheading, typed } from './roff.ts'
import { VERB_PROSE } from './verb-prose.ts'

const GROUPS: Readonly<Record<Verb['group'], string>> = {
  Run: 'Running agents',
  Look: 'Looking at branches',
  Decide: 'Deciding about changesets',
  Policy: 'Profiles and policies',
  System: 'The system',
}

function verbItems(verb: Verb, words: string, used: Set<string>): string[] {
  used.add(words)
  const more = VERB_PROSE[words]
  const options = (verb.options ?? []).map(([flags, text, repeat]) =>
    item(typed(flags), `${sentence(text)}${repeat === 'repeat' ? ' May be repeated.' : ''}`),
  )
  const inner = (verb.verbs ?? []).flatMap((one) => verbItems(one, `${words} ${one.name}`, used))
  const term = `\`${words}\`${verb.args === undefined ? '' : ` ${typed(verb.args)}`}`
  const text = `${sentence(verb.summary)}${more === undefined ? '' : `\n\n${more}`}`
  // A group of verbs is named by its verbs.
  return verb.verbs === undefined ? [`${item(term, text)}${indented(options)}`] : inner
}

const sentence = (text: string): string => {
  const whole = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(whole) ? whole : `${whole}.`
}

function verbChapters(): string {
  const used = new Set<string>()
  const chapters = Object.entries(GROUPS).map(([group, title]) => {
    const verbs = VERBS.filter((verb) => verb.group === group)
    return `${subheading(title)}${verbs.flatMap((verb) => verbItems(verb, verb.name, used)).join('')}`
  })
  const strays = Object.keys(VERB_PROSE).filter((words) => !used.has(words))
  if (strays.length > 0) throw new Error(`verb-prose.ts describes what is no verb: ${strays.join(', ')}`)
  return `${heading('Verbs')}${chapters.join('')}`
}

const DESCRIPTION = `\`puzzlectl\` runs AI agents, or any other command, in a *branch*: a copy-on-write view of real directories in which the command
works freely, while nothing it does becomes real. Writes to files land in an overlay, HTTP writes land in a queue. When it is done, both are one
changeset with one digest. A policy commits it, holds it for a person, or denies it.

Where \`puzzled\` answers on the bus, \`puzzlectl\` is its client. Where no daemon runs, root runs the same engine in the same process, on the same
store. Everything that starts or commits needs one of the two; looking at profiles, policies, plans and the machine needs neither.

A branch is named by its id, by any beginning of the id that no other branch has, or by the name that it was given.`

const ENVIRONMENT: readonly (readonly [string, string])[] = [
  ['NO_COLOR', 'No colours, whatever its value.'],
  [
    'PUZZLED_PAGER, PAGER',
    'What `diff` is shown with at a terminal. Default: `less`. Empty or `cat`: no pager. It gets no LESSOPEN, and as root LESSSECURE=1. Under `sudo` it runs as the person who typed it.',
  ],
  [
    'VISUAL, EDITOR',
    'What `queue edit` opens a request in. Default: `vi`. Under `sudo` it runs as the person who typed it.',
  ],
  ['SUDO_UID, SUDO_GID, SUDO_USER', 'Under `sudo` the person who typed it is the requester, not root.'],
  ['DBUS_SYSTEM_BUS_ADDRESS', 'The bus on which the daemon is looked for.'],
  [
    'PUZZLED_PATIENCE',
    'Seconds after which a daemon, or a machine of `--host`, that does not even answer a ping is given up (default: 30). A call that it answers may last for ever.',
  ],
  [
    'XDG_STATE_HOME',
    'Where the store of a user who is not root is, in the folder `puzzled`. Default: `~/.local/state`.',
  ],
  [
    'PUZZLED_COMPILE_CACHE',
    '`0` keeps nothing of what Node compiled, and uses nothing that was kept (`/var/cache/puzzled` for root, otherwise `~/.cache/puzzled-compiled`).',
  ],
  ['OPA', 'The compiler for `policy build` and `policy test`. Default: `opa` in the search path.'],
  ['PUZZLED_ALLOW_VOLATILE_STATE', '`1` accepts a store on tmpfs, for machines that are thrown away.'],
  ['PUZZLED_TEST_FEATURES', 'For tests: lowers what `doctor` finds, as in `landlock:3,bpf-lsm:0`.'],
]

const FILES: readonly (readonly [string, string])[] = [
  ['/var/lib/puzzled/', 'The store of root and of the daemon.'],
  ['/etc/puzzled/puzzled.yaml', 'Configuration of the daemon: `puzzled.yaml`(5).'],
  ['/etc/puzzled/profiles/*.yaml', 'Profiles of this machine: `puzzle-profile`(5).'],
  ['/etc/puzzled/policies/*.wasm', 'Policies of this machine. All of them judge every changeset.'],
  ['/etc/puzzled/actions.yaml', 'The action policy: tiers, rate limits, windows.'],
]

const SIGNALS = `\`run\`, \`exec\` and \`shell\` hand INT, TERM, HUP and QUIT on to what they have started, and end as it ends; one that
comes before is kept for it, one that comes while the branch is judged is only said, and the second one then ends \`puzzlectl\`. \`attach\` lets go of the
agent at any of them, \`events --follow\` and \`logs --follow ID\` end at INT and TERM; that is status 0. Every other verb ends by the signal, which a shell shows as
128+*n*; what the daemon was asked for goes on there. Without a daemon, a commit that was interrupted is brought to its end, or
taken back, by the next command that opens the store.`

function exitStatus(): string {
  const codes = new Map<number, string[]>()
  for (const { exit, summary } of Object.values(ERRORS))
    codes.set(exit, [...(codes.get(exit) ?? []), summary])
  const rows = [...codes].sort(([a], [b]) => a - b)
  return `${heading('Signals')}${prose(SIGNALS)}${heading('Exit status')}${prose(`\`run\` and \`wait\` end with the exit status of the command when it ran to its end and the outcome was as asked; with 128+*n* when signal
    *n* ended it; and with a status of this table otherwise. Every other verb ends with 0, or with a status of this table.`)}${item('0', 'It was done.')}${rows
    .map(([code, texts]) => item(String(code), texts.join(' ')))
    .join(
      '',
    )}${item('255', 'With `--host`: ssh did not get there or lost it, which is said, or what ran there ended so.')}`
}

const EXAMPLES = `${heading('Examples')}${prose('Let an agent work, look at what it did, and decide:')}${example(`sudo puzzlectl run --name fix --then hold -- sh -c 'echo fixed > note.txt'
sudo puzzlectl diff fix
sudo puzzlectl approve fix -m 'looks right'`)}${prose('Let it land by itself where the policy has no objection, with less than the profile allows:')}${example(`sudo puzzlectl run --budget wall=10m --budget memory=2G -- make test`)}${prose('Take back what was committed:')}${example('sudo puzzlectl revert COMMIT')}`

const items = (rows: readonly (readonly [string, string])[]): string =>
  rows.map(([term, text]) => item(`\`${term}\``, text)).join('')

export const puzzlectlPage = (): string =>
  page('puzzlectl', 1, 'User Commands', [
    `${heading('Name')}puzzlectl \\- run AI agents in branches: fork, explore, commit\n`,
    `${heading('Synopsis')}.B puzzlectl\n[\\fIoption\\fR ...]\n\\fIverb\\fR\n[\\fIargument\\fR ...]\n.br\n.B puzzlectl run\n[\\fIoption\\fR ...]\n.B \\-\\-\n\\fIcommand\\fR\n[\\fIargument\\fR ...]\n`,
    `${heading('Description')}${prose(DESCRIPTION)}`,
    `${heading('Options')}${prose('These are accepted before the verb and after it.')}`,
    ...COMMON_OPTIONS.map(([flags, text]) => item(typed(flags), sentence(text))),
    item('`-h`, `--help`', 'Print help, also of one verb.'),
    item('`-V`, `--version`', 'Print the version.'),
    verbChapters(),
    exitStatus(),
    `${heading('Environment')}${items(ENVIRONMENT)}`,
    `${heading('Files')}${items(FILES)}`,
    EXAMPLES,
    seeAlso(['puzzled(8)', 'puzzled.yaml(5)', 'puzzle-profile(5)']),
  ])
