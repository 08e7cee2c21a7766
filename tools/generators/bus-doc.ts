import { objectXml } from '../../daemon/api/server.ts'
import {
  BRANCH,
  type BusArgument,
  type BusInterface,
  MANAGER,
  MANAGER_PATH,
} from '../../daemon/contract/bus.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'

const ACTIONS = {
  look: 'anybody who may see it',
  manage: '`org.puzzled1.manage`',
  approve: '`org.puzzled1.approve`',
  administer: '`org.puzzled1.administer`',
} as const

const list = (args: readonly BusArgument[]): string =>
  args.map(({ name, type }) => `${name} \`${type}\``).join(', ')

function chapter(face: BusInterface): string {
  const methods = Object.entries(face.methods).map(
    ([name, { in: given, out, action, about }]) =>
      `| \`${name}\` | ${list(given)} | ${list(out)} | ${ACTIONS[action]} | ${about} |`,
  )
  const properties = Object.entries(face.properties).map(
    ([name, { type, about }]) => `| \`${name}\` | \`${type}\` | ${about} |`,
  )
  const signals = Object.entries(face.signals).map(
    ([name, { args, about }]) => `| \`${name}\` | ${list(args)} | ${about} |`,
  )
  return `## ${face.name}

| method | in | out | who | |
|---|---|---|---|---|
${methods.join('\n')}

| property | type | |
|---|---|---|
${properties.join('\n')}

| signal | arguments | |
|---|---|---|
${signals.join('\n')}
`
}

const EVENTS: Readonly<Record<PuzzledEvent['kind'], readonly [members: string, about: string]>> = {
  state: ['`from`, `to`, `reason`', 'It moved on ([lifecycle.md](lifecycle.md)).'],
  verdict: ['`verdict`, `digest`', 'The gate has judged it.'],
  approval: ['`decision` (approve, reject), `by` (uid), `digest`', 'A person has decided.'],
  denial: ['`layer`, `subject`, `rule`, `message`, `help` or absent', 'The agent was refused something.'],
  budget: ['`budget`, `used`, `limit`, `percent`', 'It is about to be used up, or is.'],
  restart: [
    '`code` or `signal`, `restart`, `pauseMillis`',
    'The agent has ended so; after that pause it is started again for that time.',
  ],
  request: ['`id`, `state`, `method`, `host`', 'What became of a queued request.'],
  commit: ['`commit`, `digest`', 'It landed.'],
  warning: ['`message`', 'What somebody should know, and nobody is asked about.'],
}
const eventRows = Object.entries(EVENTS)
  .map(([kind, [members, about]]) => `| \`${kind}\` | ${members} | ${about} |`)
  .join('\n')

const reference = `# D-Bus

Generated from \`daemon/contract/bus.ts\`. The daemon owns \`org.puzzled1\` on the system bus. \`${MANAGER_PATH}\` is the manager and an
\`org.freedesktop.DBus.ObjectManager\`; every branch is an object \`${MANAGER_PATH}/branch/<id>\`. The introspection data is in \`docs/dbus/\`; a
test compares it with a running daemon.

**Who may.** A caller is identified by the credentials of its connection and by its cgroup. A process inside a branch is refused everything, even a
ping. Where polkit runs, it decides about the action of the method; elsewhere the groups \`puzzled\` (manage) and \`puzzled-reviewers\` (approve, and
see every branch) do. Everybody else sees and manages only branches of their own: those of others do not exist for them. Root may do everything.

**Signals** are addressed to connections that have called the daemon before and may see the branch; no match rule is needed. Call
\`GetManagedObjects\` first, as clients do anyway.

**Values.** Structured values are \`a{sv}\` with every member typed; lists are \`av\`, bytes \`ay\`, integers \`x\`, integers beyond 53 bits \`(x)\`, and the
absent value is an empty signature (\`g\`). Keys are those of \`daemon/contract/\`. The request of \`Run\` and \`CreateBranch\`:

| key | type | default |
|---|---|---|
| \`bases\` | \`av\` of \`s\`, absolute | required |
| \`command\` | \`av\` of \`s\` | required |
| \`cwd\` | \`s\`, absolute | required |
| \`profile\` | \`s\` | \`standard\` |
| \`name\` | \`s\` or absent | absent |
| \`afterwards\` | \`s\`: gate, hold, discard | \`gate\` |
| \`budgets\` | \`a{sv}\` of \`x\` by kind | those of the profile |
| \`environment\` (\`Run\`) | \`a{sv}\` of \`s\`; the profile decides what of it passes | empty |
| \`setEnvironment\` (\`Run\`) | \`a{sv}\` of \`s\`; set whatever the profile passes | empty |
| \`unattended\` (\`Run\`) | \`b\`: the daemon itself does what \`afterwards\` says | false |
| \`restart\` (\`Run\`) | \`a{sv}\` or absent: \`when\` is on-failure or always, \`times\` \`x\` or absent (without end): when it has ended it is started again | absent |
| \`stdio\` (\`Run\`) | \`a{sv}\`: \`kind\` is pipes, pty (\`columns\`, \`rows\`, \`inherit\`) or inherit (\`fds\`) | pipes |

The request of \`Exec\` has \`command\` and, optional, \`cwd\` (where the agent was started), \`environment\`, \`setEnvironment\`, \`stdio\`,
\`timeout\` (seconds) and \`limits\` (\`a{sv}\` of \`memory\` \`x\` in bytes, \`pids\` \`x\`, \`cpus\` \`d\` or \`x\`: of this command alone; a host that cannot
hold one of them refuses the command).

\`fds\` and \`inherit\` are descriptor numbers of the calling process: pipes and devices are duplicated, files and stream sockets
are copied by a process with the caller's rights. An unknown key is an error.

**Sessions.** \`Run\`, \`Exec\` and \`Attach\` answer with the path of a unix socket that only the caller's uid and root can open. Both
sides send frames: one letter, the length in four bytes (big endian), so many bytes (at most 1 MiB).

| to the daemon | | from the daemon | |
|---|---|---|---|
| \`i\` | bytes for standard input | \`o\` | standard output, or what the terminal shows |
| \`e\` | standard input ends | \`r\` | standard error |
| \`w\` | columns and rows, two bytes each | \`x\` | the end, as JSON: code, signal, cause (exited, signal, timeout, oom, budget), \`lost\` where a descriptor of the caller failed, \`restarts\` where it was started again, times, use |
| \`s\` | name of a signal (\`Exec\` only) | \`m\` | why the daemon lets go of this reader |
| \`h\` | wait for me when I read slowly | | |

The first reader of an agent gets everything, and is waited for up to ten seconds; a later one first gets the last 64 KiB. The first, and one that asked with \`h\`, holds the agent up when it is slow, as a pipe does; others are dropped when
they are more than 1 MiB behind. A command of \`Exec\` has one reader, its caller: it waits for it, and when that one leaves the
socket the command gets HUP, then TERM, and is killed ten seconds later. An agent goes on whoever leaves.

**Events** have \`kind\`, \`branch\` and \`time\`, and by their kind:

| kind | members | |
|---|---|---|
${eventRows}

**Errors** are \`org.puzzled1.Error.*\` as in [errors.md](errors.md), with the remedy on the second line, and
\`org.freedesktop.DBus.Error.{UnknownObject,UnknownInterface,UnknownMethod,UnknownProperty,PropertyReadOnly,InvalidArgs}\`. A connection may have 64 calls open
and make 500 a second; more is \`org.puzzled1.Error.TooLarge\`.

${chapter(MANAGER)}
${chapter(BRANCH)}`

const document = (face: BusInterface): string => `<node>\n${objectXml(face)}</node>\n`
console.log(
  JSON.stringify({
    'docs/dbus.md': reference,
    'docs/dbus/org.puzzled1.Manager.xml': document(MANAGER),
    'docs/dbus/org.puzzled1.Branch.xml': document(BRANCH),
  }),
)
