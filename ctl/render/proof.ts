// pure
import type { ProofReport } from '../../daemon/prove-host.ts'
import { columnsText } from './columns.ts'
import type { Paint } from './paint.ts'
import { visibleLine } from './visible.ts'
import { cellWidth, foldText } from './width.ts'

/** One row per attack with the layers each of which stops it alone; then what nobody can say about this machine. */
export function proofText(report: ProofReport, paint: Paint, width?: number): string {
  const { host, attacks, checks, product, time, profile } = report
  const head = `puzzled ${visibleLine(product)} on Linux ${visibleLine(host.kernel)} (${host.architecture}), ${visibleLine(time)}\n`
  const acts = attacks.map(({ words, result, stoppedBy, outcome }): Row => {
    const layers = stoppedBy.join(' ')
    return {
      cells: [words, outcomeText(outcome), result, layers],
      below: `${result}: ${layers || 'nothing'}`,
    }
  })
  const decisions = checks.map(({ words, outcome, stoppedBy, detail }): Row => {
    const [by, about] = [visibleLine(stoppedBy), visibleLine(detail)]
    const below = by === '' || about === '' ? by + about : `${by} (${about})`
    return { cells: [words, outcomeText(outcome), by, about], below }
  })
  return [
    head,
    `\n${paint.bold(`What holds the agent (profile ${visibleLine(profile)})`)}\n`,
    tableText(['ATTACK', '', 'ANSWER', 'STOPPED BY EACH OF'], acts, paint, width),
    `\n${paint.bold('What decides about its work (profile standard)')}\n`,
    tableText(['ATTACK', '', 'STOPPED BY', ''], decisions, paint, width),
    foldText(unverifiedText(report, paint), width, 4),
    summary(report, paint),
  ].join('')
}

interface Row {
  readonly cells: readonly [words: string, outcome: string, ...rest: string[]]
  /** What stands below the attack where there is no room beside it. */
  readonly below: string
}

/** A table; on a screen that is too narrow for one, each attack with what became of it below. */
function tableText(
  header: readonly [string, string, ...string[]],
  rows: readonly Row[],
  paint: Paint,
  width = Number.POSITIVE_INFINITY,
): string {
  const lines = rows.map(({ cells }) => cells)
  const table = columnsText(header, lines, paint)
  if (table.split('\n').every((line) => cellWidth(line) <= width)) return table
  const outcomes = Math.max(...rows.map(({ cells }) => cells[1].length))
  const indent = ' '.repeat(outcomes + 2)
  return rows
    .map(({ cells: [words, outcome], below }) => {
      const first = foldText(`${outcome.padEnd(outcomes)}  ${words}`, width, indent.length)
      return `${first}\n${below === '' ? '' : `${foldText(`${indent}${paint.dim(below)}`, width, indent.length)}\n`}`
    })
    .join('')
}

const outcomeText = (outcome: ProofReport['attacks'][number]['outcome']): string =>
  ({ stopped: 'stopped', escaped: 'ESCAPED', 'not-verified': 'not verified here' })[outcome]

function unverifiedText({ notVerified }: ProofReport, paint: Paint): string {
  if (notVerified.length === 0) return ''
  const lines = notVerified.map(({ what, why }) => `  ${visibleLine(what)}: ${visibleLine(why)}\n`)
  return `\n${paint.bold('Not verified here')}\n${lines.join('')}`
}

function summary({ attacks, checks, held }: ProofReport, paint: Paint): string {
  const all = [...attacks, ...checks]
  const count = (outcome: string): number => all.filter((one) => one.outcome === outcome).length
  const counts = `${count('stopped')} stopped, ${count('escaped')} escaped, ${count('not-verified')} not verified`
  return `\n${held ? paint.green(`Nothing escaped: ${counts}.`) : paint.red(`Something escaped: ${counts}.`)}\n`
}
