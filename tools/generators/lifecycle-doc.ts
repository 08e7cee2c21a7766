import {
  afterRestart,
  eventsBetween,
  LIFECYCLE_EVENTS,
  next,
  reachable,
} from '../../daemon/branch/lifecycle.ts'
import { BRANCH_STATES, isTerminal } from '../../daemon/contract/states.ts'

const rows = BRANCH_STATES.map((state) => {
  const moves = LIFECYCLE_EVENTS.filter((event) => event !== 'restarted' && next(state, event) !== undefined)
    .map((event) => `${event} → \`${next(state, event)}\``)
    .join(', ')
  const restart = isTerminal(state) ? 'final' : `\`${afterRestart(state)}\``
  return `| \`${state}\` | ${moves === '' ? 'none: final' : moves} | ${restart} |`
})

const edges = BRANCH_STATES.flatMap((from) =>
  reachable(from).map((to) => {
    const events = eventsBetween(from, to).filter((event) => event !== 'restarted')
    return `    ${from.replace('-', '_')} --> ${to.replace('-', '_')}: ${events.join(' / ')}`
  }),
)

const text = `# Lifecycle of a branch

Generated from \`daemon/branch/lifecycle.ts\`; a move that is not in this table is refused with \`wrong-state\`. Every move is
durable in \`branch.json\` before it is written to the audit log, and in the audit log before it is signalled.

| state | event → next state | after a power cut or a new daemon |
|---|---|---|
${rows.join('\n')}

\`committing\` means that INTENT is durable: after a restart the journal decides (\`docs/journal.md\`), forward to
\`committed\`, or back to \`stopped\` with the old base. A branch in \`staging\` whose INTENT did reach the disk is treated as \`committing\`.
A branch in \`running\` or \`frozen\` becomes \`stopped\` with the exit cause \`daemon-restart\`: its processes are swept, what it wrote stays.

\`\`\`mermaid
stateDiagram-v2
${edges.join('\n')}
\`\`\`
`
console.log(JSON.stringify({ 'docs/lifecycle.md': text }))
