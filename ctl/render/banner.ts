// pure
import type { AgentExit, LostStream } from '../../daemon/contract/branch.ts'
import type { Outcome } from '../../daemon/contract/engine.ts'
import type { Paint } from './paint.ts'
import { bytesText, timesText } from './sizes.ts'
import { visibleLine } from './visible.ts'

/** How much of an id is shown in commands to type; ten random letters are told apart by far fewer. */
const SHORT_ID = 6

/** `+3 ~2 -1, 2 queued requests`, or `no changes`. */
export function changesText(outcome: Pick<Outcome, 'totals' | 'requests'>): string {
  const { additions, modifications, deletions, bytes } = outcome.totals
  const parts: string[] = []
  if (additions + modifications + deletions > 0)
    parts.push(`+${additions} ~${modifications} -${deletions} (${bytesText(bytes)})`)
  if (outcome.requests > 0)
    parts.push(`${outcome.requests} queued request${outcome.requests === 1 ? '' : 's'}`)
  return parts.length === 0 ? 'no changes' : parts.join(', ')
}

/** Lines below the first are indented by two; what goes on below any of them is told apart. */
export const BANNER_HANG = 4

/** As short as it can be typed. */
export const bannerId = ({ name, branch }: Pick<Outcome, 'name' | 'branch'>): string =>
  visibleLine(name ?? branch.slice(0, SHORT_ID))

/** The lines at the end of `run`: which branch, what changed, what was decided, what to type next. */
export function bannerText(outcome: Outcome, paint: Paint): string {
  const next = nextCommands(outcome, bannerId(outcome))
  return `${summaryText(outcome, paint)}${next === '' ? '' : `  ${paint.dim('next:')} ${next}\n`}`
}

/** What a revert has done; its outcome names the commit that was taken back where others name their branch. */
export function revertText({ branch, totals: { files }, commit, warnings }: Outcome, paint: Paint): string {
  const what = `${files} path${files === 1 ? '' : 's'} as before`
  const head = `${paint.bold('puzzled:')} commit ${branch} taken back: ${what}; ${paint.green(`committed as ${commit}`)}`
  const lines = [head, ...warningLines(warnings, paint)]
  return `${lines.join('\n')}\n  ${paint.dim('next:')} puzzlectl revert ${commit} brings it again\n`
}

/** The same without what to type next. */
export function summaryText(outcome: Outcome, paint: Paint): string {
  const id = bannerId(outcome)
  // What a commit of long ago changed is not counted again.
  const known = outcome.state !== 'committed' || outcome.totals.files > 0 || outcome.requests > 0
  const changes = known ? `${changesText(outcome)}; ` : ''
  const head = `${paint.bold('puzzled:')} branch ${id}: ${changes}${verdictText(outcome, paint)}`
  const lost = outcome.exit === null ? [] : lostLines(outcome.exit, paint)
  const lines = [
    head,
    ...endLine(outcome, paint),
    ...restartLine(outcome),
    ...lost,
    ...warningLines(outcome.warnings, paint),
  ]
  for (const { path, message } of outcome.conflicts.slice(0, 5))
    lines.push(`  ${paint.red('conflict')} ${visibleLine(path)}: ${visibleLine(message)}`)
  for (const line of findingLines(outcome, paint)) lines.push(line)
  return `${lines.join('\n')}\n`
}

/** What the exit status alone does not tell; where it holds the branch, the finding says it. */
function endLine({ exit, verdict }: Outcome, paint: Paint): string[] {
  if (exit === null || verdict?.hold.some(({ rule }) => rule === 'agent-failed')) return []
  const text = exit.why === undefined ? ENDS[exit.cause] : visibleLine(exit.why)
  return text === undefined ? [] : [`  ${paint.yellow(exit.cause)} ${text}`]
}

function restartLine({ exit }: Outcome): string[] {
  const times = exit?.restarts ?? 0
  return times === 0 ? [] : [`  the agent was started again ${timesText(times)}`]
}

const ENDS: Readonly<Partial<Record<AgentExit['cause'], string>>> = {
  budget: 'a budget was used up',
  oom: 'the agent was ended: it had used all the memory it may',
  timeout: 'the agent was ended: its time was over',
  'daemon-restart': 'the agent was ended: the daemon ended before it',
}

const LOST: Readonly<Record<LostStream['stream'], string>> = {
  stdin: 'standard input could not be read to its end',
  stdout: 'standard output did not take all that was written to it',
  stderr: 'standard error did not take all that was written to it',
}

/** What ran knows nothing of it, and may have ended well. */
export const lostLines = ({ lost = [] }: AgentExit, paint: Paint): string[] =>
  lost.map(({ stream, errno }) => `  ${paint.yellow('warning')} ${LOST[stream]}: ${visibleLine(errno)}`)

const warningLines = (warnings: Outcome['warnings'], paint: Paint): string[] =>
  warnings
    .slice(0, 5)
    .map(({ path, message }) => `  ${paint.yellow('warning')} ${visibleLine(path)}: ${visibleLine(message)}`)

function verdictText(outcome: Outcome, paint: Paint): string {
  if (outcome.state === 'committed') return paint.green(`committed as ${outcome.commit ?? '?'}`)
  if (landedInPart(outcome)) return paint.green(visibleLine(outcome.reason))
  if (outcome.state === 'commit-stuck') return paint.red(`STUCK: ${visibleLine(outcome.reason)}`)
  if (outcome.conflicts.length > 0) return paint.red(`conflict, nothing was committed`)
  if (outcome.state === 'discarded')
    return outcome.reason === 'nothing was changed' ? 'nothing to commit' : 'discarded'
  if (outcome.verdict?.kind === 'deny') return paint.red('denied by policy, nothing was committed')
  if (outcome.state === 'held') return paint.yellow(heldText(visibleLine(outcome.reason)))
  return `${outcome.state}: ${visibleLine(outcome.reason)}`
}

/** Its commit has just happened: whatever follows moves the branch on from there, or fails. */
const landedInPart = ({ state, commit }: Outcome): boolean => state === 'stopped' && commit !== null

const heldText = (reason: string): string => (reason.startsWith('held ') ? reason : `held: ${reason}`)

function findingLines(outcome: Outcome, paint: Paint): string[] {
  if (outcome.verdict === null || outcome.state === 'committed' || landedInPart(outcome)) return []
  const findings = [...outcome.verdict.deny, ...outcome.verdict.hold]
  const lines = findings.slice(0, 5).map((finding) => {
    const where = finding.path === undefined ? '' : ` ${visibleLine(finding.path)}:`
    return `  ${paint.yellow(finding.rule)}${where} ${visibleLine(finding.message)}`
  })
  if (findings.length > 5) lines.push(`  … and ${findings.length - 5} more findings`)
  return lines
}

/** The first is the one to type; the others are named, not joined by anything that a shell would understand. */
function nextCommands(outcome: Outcome, id: string): string {
  const first = (verb: string, ...others: string[]): string =>
    `puzzlectl ${verb} ${id}${others.length === 0 ? '' : ` (or ${others.join(', ')})`}`
  if (outcome.state === 'committed') return `puzzlectl revert ${outcome.commit ?? ''}`
  if (outcome.conflicts.length > 0) return first('rebase', 'diff', 'discard')
  if (outcome.state === 'commit-stuck') return first('show')
  if (outcome.state !== 'held' && outcome.state !== 'stopped') return ''
  if (outcome.verdict?.kind === 'deny') return first('diff', 'review', 'discard')
  if (outcome.state === 'stopped') return first('diff', 'commit', 'discard')
  return first('review', 'diff', 'approve', 'reject')
}
