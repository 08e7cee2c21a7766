// pure
import type { AgentExit, BranchRecord, RestartPolicy } from '../../daemon/contract/branch.ts'
import { type BranchSummary, findingsOf } from '../../daemon/contract/engine.ts'
import type { Verdict } from '../../daemon/contract/verdict.ts'
import { columnsText } from './columns.ts'
import type { Paint } from './paint.ts'
import { agoText, bytesText, timesText } from './sizes.ts'
import { visibleLine } from './visible.ts'
import { cutText } from './width.ts'

const commandText = (command: readonly string[]): string => visibleLine(command.join(' '))

/** One line per branch, no wider than the screen; commands are what is cut first, and never longer than people read. */
export function branchTable(
  branches: readonly BranchSummary[],
  now: number,
  paint: Paint,
  width?: number,
): string {
  const rows = branches.map((branch) => [
    branch.id,
    visibleLine(branch.name ?? '-'),
    branch.state,
    agoText(now - Date.parse(branch.createdAt)),
    visibleLine(branch.bases.join(' ')),
    cutText(commandText(branch.command), MOST_OF_A_COMMAND),
  ])
  return columnsText(['ID', 'NAME', 'STATE', 'AGE', 'BASE', 'COMMAND'], rows, paint, width)
}

const MOST_OF_A_COMMAND = 80

/** Where values begin, right of their labels. */
export const DETAILS_AT = 12

/** Everything that a person needs to decide, most important first. */
export function branchDetails(record: BranchRecord, now: number, paint: Paint): string {
  const lines: string[] = []
  const add = (label: string, value: string): void =>
    void lines.push(`${paint.dim(label.padStart(DETAILS_AT - 2))}  ${value}`)
  add('branch', `${record.id}${record.name === null ? '' : ` (${visibleLine(record.name)})`}`)
  add('state', stateText(record, paint))
  add('created', `${record.createdAt} (${agoText(now - Date.parse(record.createdAt))} ago)`)
  add('command', commandText(record.command))
  for (const base of record.bases) add('base', `${visibleLine(base.path)} (${base.filesystem})`)
  add('profile', `${visibleLine(record.profile.name)} (sha256 ${record.profile.sha256.slice(0, 12)})`)
  add('requester', `${visibleLine(record.requester.name)} (uid ${record.requester.uid})`)
  if (record.restart !== undefined) add('restart', restartText(record.restart, record, now))
  if (record.exit !== null) add('exit', exitText(record.exit))
  if (record.digest !== null) add('digest', record.digest)
  if (record.commit !== null) add('commit', `${record.commit.id} at ${record.commit.at}`)
  if (record.verdict !== null) add('verdict', fateText(record, record.verdict, paint))
  for (const line of findingLines(record, paint)) add('', line)
  for (const grant of record.grants)
    if (!grant.full)
      add(
        'granted',
        `${paint.yellow(grant.what)}: asked for ${readable(grant.what, grant.requested)}, got ${grant.granted}`,
      )
  return `${lines.join('\n')}\n`
}

/** A reason often begins with the state; it is not said twice. */
function stateText({ state, reason }: BranchRecord, paint: Paint): string {
  if (reason === '' || reason === state) return paint.bold(state)
  const rest = reason.startsWith(`${state} `) ? reason.slice(state.length) : `: ${reason}`
  return `${paint.bold(state)}${visibleLine(rest)}`
}

/** Limits are on record to the byte; people read them by their size. */
const readable = (what: string, text: string): string =>
  visibleLine(text).replace(/\b\d+( bytes)?\b/g, (number, unit: string | undefined) =>
    unit !== undefined || what.startsWith('memory') ? bytesText(Number.parseInt(number, 10)) : number,
  )

/**
 * What the policy said, and what became of it: `hold` alone would tell of a branch that landed long ago that it still waits.
 * An approval is of one digest; another one's says nothing about these changes.
 */
function fateText(record: BranchRecord, verdict: Verdict, paint: Paint): string {
  const { state, commit, approval, digest, afterwards } = record
  const kind = paint.bold(verdict.kind)
  if (verdict.shadow) return `${kind} (shadow: on record, not enforced)`
  const by = approval?.by.map(({ name, uid }) => `${visibleLine(name)} (uid ${uid})`).join(', ')
  if (state === 'committed' && verdict.kind === 'hold') return `${kind}, approved by ${by ?? 'a person'}`
  if (verdict.kind === 'allow' && afterwards === 'hold') {
    if (state === 'held') return `${kind}; it waits for a person because that was asked for (--then hold)`
    if (state === 'committed' && by !== undefined)
      return `${kind}; it waited as asked for (--then hold) and was approved by ${by}`
  }
  // A part has landed; the verdict is about the whole, and the rest of it was not judged again yet.
  if (by !== undefined && commit?.digest === approval?.digest && commit?.digest !== digest)
    return `${kind}; what landed was approved by ${by}`
  return kind
}

const howText = ({ code, signal }: Pick<AgentExit, 'code' | 'signal'>): string =>
  signal === null ? `status ${code ?? '?'}` : `signal ${signal}`

function exitText(exit: AgentExit): string {
  const { cause, why } = exit
  const told = cause === 'exited' || cause === 'signal' ? [] : [cause]
  const rest = [...told, ...(why === undefined ? [] : [visibleLine(why)])]
  return rest.length === 0 ? howText(exit) : `${howText(exit)} (${rest.join(': ')})`
}

/** While it runs: how often that was not the first time, and what the last end was. */
function restartText({ when, times }: RestartPolicy, { exit, restarted }: BranchRecord, now: number): string {
  const asked = times === null ? when : `${when}, at most ${timesText(times)}`
  if (exit?.restarts !== undefined) return `${asked}; was started again ${timesText(exit.restarts)}`
  if (restarted === undefined) return asked
  const ago = agoText(now - Date.parse(restarted.at))
  return `${asked}; ended ${timesText(restarted.restart)}, ${ago} ago with ${howText(restarted)}`
}

function findingLines(record: BranchRecord, paint: Paint): string[] {
  if (record.verdict === null) return []
  const lines: string[] = []
  for (const finding of findingsOf(record.verdict)) {
    const where = finding.path === undefined ? '' : ` ${visibleLine(finding.path)}:`
    lines.push(`${paint.yellow(finding.rule)} [${finding.severity}]${where} ${visibleLine(finding.message)}`)
    if (finding.help !== undefined) lines.push(`  ${paint.dim(visibleLine(finding.help))}`)
  }
  return lines
}
