/**
 * What the manual says about a verb besides its summary and options, by the words that are typed. A verb without an entry
 * has its summary; an entry without a verb is an error of the generator.
 */
export const VERB_PROSE: Readonly<Record<string, string>> = {
  run: `The command sees the current directory (or each *dir* of --base) at its real path and may change it; nothing of that is
    real before the gate has judged the whole changeset. Standard input, output, error and a terminal work as if the command ran directly.

    With \`--then gate\` what the policy allows is committed, what it does not is held for a person, and what it denies stays in the
    branch with its findings. With \`hold\` everything waits for a person; with \`discard\` everything is thrown away. A command that fails is
    held, not committed. At the end one line on standard error names the branch, what changed, the verdict and the command to type next.

    Without \`--env\` the profile decides which variables pass. \`--env NAME\` passes the caller's value, \`--env NAME=value\` sets one. A
    \`--budget\` can only be lower than the profile's.

    With \`--restart on-failure\` an agent that fails is started again in its branch, with \`always\` one that ends well, too. Files, terminal, pipes and
    budgets go on; everything else that runs in the branch is killed first. The pauses are 100 ms, then twice as long each time up to a minute; a run
    of ten seconds makes the next one short again. TERM, INT, HUP and QUIT, \`^C\` in a pause, a budget that is used up and the end of the daemon end it
    for good. The gate judges what all of its runs have done, and the exit status is that of the last one.

    With \`--host\` at least one --base is needed, a directory of that machine; the command starts in the first one.`,
  explain:
    'Prints every system call of the start, in order, with its arguments. Nothing is started, and no root is needed.',
  metrics: 'In the format of Prometheus (OpenMetrics). Needs the daemon.',
  'net test':
    'Nothing is sent. For a running branch the answer comes from the rules that are in force there.',
  'queue edit':
    'The branch is judged again: no approval from before fits. Without options the request is opened in $EDITOR.',
  prove: `Each attack is tried outside first, where it must succeed, and then in a branch, with one layer after the other taken away. A row that this machine
    cannot show says "not verified here". Exit status 1 means that something got out.`,
  wait: `Ends with the exit status with which \`puzzlectl run\` would have ended. Of several branches every one is waited for and
    told of as soon as it has ended; the status is then that of the first one, as they are given, whose own is not 0.`,
  signal: `\`STOP\` and \`CONT\` freeze and thaw the whole branch. \`KILL\` ends every process of it and says how many were left.
    Others are sent to the agent, which may handle them.
    After INT and TERM it has ten seconds to end; what is left then is killed, and a frozen branch at once.`,
  freeze: 'Time in which a branch stands still does not count for its budgets.',
  budget:
    'A branch that stands still because of this budget goes on; one that was frozen as asked waits for thaw.',
  diff: `Names and contents are made harmless: control characters, direction marks and lookalikes are shown, never obeyed.

    With --patch it is a patch in the format of git and nothing else: contents, symbolic links, executable bits, deletions and binary
    files, byte for byte unless it goes to a terminal. Apply it with \`git apply\`, or with \`patch -p1\` where nothing is binary. What git has
    no words for is left out and named on standard error: owners, attributes, other permissions, empty directories, whatever lies in a
    .git. A file of more than 16 MiB cannot be carried at all: the patch lacks it, and the status is 65.`,
  ls: 'Finished branches are left out. With --quiet nothing but ids is printed, and nothing at all where there is no branch.',
  review: `The layers are read again, so that the decision is about what is there now. Then each change is shown, what the policy
found first, and one key decides: a takes it, r leaves it in the branch, s takes single pieces of a file, b goes back, q
leaves without a decision, ? lists the keys. At the end what was taken is shown with its digest, and one approval is asked
for, bound to exactly that. Single pieces become a branch of their own; the rest can be rebased over it. Needs a terminal.`,
  exec: `Where the agent runs, the command joins it: the same namespaces, files, network and locks, a cgroup of its own; it ends
with the agent at the latest, also with one that is started again. Where nothing runs and nothing is decided, it runs as the agent did, and the branch is judged
again; how the agent ended stays on record. Ends with the status of the command, 124 at its time limit
and at a limit of its memory. With \`--limit\` the kernel holds this command and what it starts to a part of what the branch may use; where it cannot
(\`puzzlectl doctor\` says so) the command is refused. When puzzlectl ends,
the command does. With --json the result is one document: code, signal, cause (exited, signal, timeout, oom, budget), times,
use, and up to 1 MiB of each output, as text or base64.`,
  shell: 'As exec does it. exit ends the shell; what it changed belongs to the branch.',
  attach: `Shows the last 64 KiB of what was written and everything from then on; what is typed goes to the agent. Several can be
attached; one who reads too slowly is let go, the agent never waits. Ends with the status of the agent. Pressing Ctrl-] three
times within a second lets go, and the agent goes on. Needs the daemon, and an agent that was started with --detach or at a
terminal.`,
  logs: `At least the last 4 MiB are kept with the branch, as long as there is one. What went to /dev/null or to a device is not.
At a terminal control characters are shown, not sent.`,
  events: 'With --follow what is kept comes first. With --json each event is one line.',
  approve: `The approval is bound to the digest of the changeset and to the version of the policies, and is used once. With \`--digest\`
    it is refused unless the changeset is exactly the one that was looked at. \`--only\` and \`--except\` make a changeset of a part,
    which is judged again; the rest stays in the branch. Patterns are matched below the base.`,
  commit: `Lands what is allowed or approved. On a branch that is \`commit-stuck\` the journal is followed again.`,
  rebase: `For a branch whose base changed since the fork. Paths that both sides changed are collisions: each needs \`--ours\`, \`--theirs\`
    or \`--drop\`. The old branch stays as it is.`,
  discard: `One rename per branch, whatever its size; the space is freed in the background. A branch that cannot be thrown away does
    not keep the others; the status is that of the first failure.`,
  revert:
    'Nothing that was changed since is overwritten: such paths are conflicts. Possible as long as retention keeps the old versions.',
  'profile from-agents-md': 'Prints a draft. Nothing of it is in force until somebody installs it.',
  'policy eval': 'Nothing is run: the changeset is a file, and what would be decided is printed.',
  'queue resume':
    'A request whose fate is unknown may have arrived; only a person can know whether it may arrive twice.',
  doctor: `Each primitive is tried, not looked up. Exit status 0 means that agents can be started here; else it is that of the
    error with which a start would end.`,
  gc: 'The timer of the service does this once a day.',
  'audit verify': 'Opens no store: it also works beside a running daemon, and on a copy.',
  'audit key':
    'Keep a copy of it on another machine: whoever has only the log and this key can check every signature.',
  'daemon install': 'Code that anybody but root can write is refused: whoever could change it would be root.',
}
