// pure
import { type DoctorReport, ESSENTIAL } from '../../daemon/contract/doctor.ts'
import { exitStatusOf } from '../../daemon/contract/errors.ts'
import type { FeatureRow, FeatureState } from '../../daemon/contract/features.ts'
import { columnsText } from './columns.ts'
import type { Paint } from './paint.ts'
import { visibleLine } from './visible.ts'
import { foldText } from './width.ts'

/** One row per primitive, then what is lost and what mends it, then one sentence; no line is wider than the screen. */
export function doctorText(report: DoctorReport, paint: Paint, width?: number): string {
  const { host, state, features } = report
  const head = `Linux ${host.kernel} on ${host.architecture}, Node ${host.node}, uid ${host.uid}\n`
  const place = `State directory ${visibleLine(state.path)}: ${state.filesystem ?? 'unknown filesystem'}${state.exists ? '' : ' (not made yet)'}\n`
  const table = columnsText(
    ['FEATURE', 'STATE', 'WHAT WAS TRIED'],
    features.map((row) => [row.name, row.state, visibleLine(row.detail)]),
    paint,
    width,
    'fold',
  )
  const coloured = table.replace(
    /^(\S+ +)(have|partly|missing)(?= )/gm,
    (_, name: string, word: FeatureState) => {
      return `${name}${paint[COLOUR[word]](word)}`
    },
  )
  const lacking = features.filter((row) => row.state !== 'have')
  const lost = lacking.length === 0 ? '' : `\n${lacking.map((row) => lostText(row, paint)).join('')}`
  const rest = foldText(`${lost}\n${verdictText(report, paint)}`, width, 4)
  return `${head}${place}\n${coloured}${rest}`
}

const COLOUR = { have: 'green', partly: 'yellow', missing: 'red' } as const

const lostText = (row: FeatureRow, paint: Paint): string =>
  `${paint.bold(row.name)}: ${visibleLine(row.lost)}\n${row.remedy === '' ? '' : `  ${paint.dim('mend:')} ${visibleLine(row.remedy)}\n`}`

function verdictText(report: DoctorReport, paint: Paint): string {
  const lines: string[] = []
  for (const problem of [report.host.problem, report.state.problem]) {
    if (problem === null) continue
    lines.push(paint.red(visibleLine(problem.message)))
    if (problem.hint !== null) lines.push(`  ${paint.dim('mend:')} ${visibleLine(problem.hint)}`)
  }
  const missing = report.features.filter((row) => ESSENTIAL.includes(row.name) && row.state === 'missing')
  if (missing.length > 0) {
    const names = missing.map(({ name }) => name).join(', ')
    lines.push(paint.red(`No agent can be started here: ${names} missing.`))
  }
  if (report.ready) lines.push(paint.green('Agents can be started here.'))
  return `${lines.join('\n')}\n`
}

/** 0 when agents can be started; else the status of the error that starting one would end with. */
export function doctorStatus(report: DoctorReport): number {
  if (report.ready) return 0
  return exitStatusOf((report.host.problem ?? report.state.problem)?.code ?? 'feature-missing')
}
