// pure
import type { ProofReport } from '../../daemon/prove-host.ts'
import { columnsText } from './columns.ts'
import type { Paint } from './paint.ts'
import { visibleLine } from './visible.ts'
import { foldText } from './width.ts'

/** One row per attack with the layers each of which stops it alone; then what nobody can say about this machine. */
export function proofText(report: ProofReport, paint: Paint, width?: number): string {
  const { host, attacks, checks, product, time, profile } = report
  const head = `puzzled ${visibleLine(product)} on Linux ${visibleLine(host.kernel)} (${host.architecture}), ${visibleLine(time)}\n`
  const acts = attacks.map(({ words, result, stoppedBy, outcome }) => [
    words,
    outcomeText(outcome),
    result,
    stoppedBy.join(' '),
  ])
  const decisions = checks.map(({ words, outcome, stoppedBy, detail }) => [
    words,
    outcomeText(outcome),
    visibleLine(stoppedBy),
    visibleLine(detail),
  ])
  return [
    head,
    `\n${paint.bold(`What holds the agent (profile ${visibleLine(profile)})`)}\n`,
    columnsText(['ATTACK', '', 'ANSWER', 'STOPPED BY EACH OF'], acts, paint, width, 'fold'),
    `\n${paint.bold('What decides about its work (profile standard)')}\n`,
    columnsText(['ATTACK', '', 'STOPPED BY', ''], decisions, paint, width, 'fold'),
    foldText(unverifiedText(report, paint), width, 4),
    summary(report, paint),
  ].join('')
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
