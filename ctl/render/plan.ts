// pure
import type { ExplainedPlan } from '../../daemon/contract/plan.ts'
import { columnsText } from './columns.ts'
import type { Paint } from './paint.ts'

/** The plan as a table, one system call a line, with a heading for each chapter of docs/spawn.md. */
export function planText(plan: ExplainedPlan, paint: Paint): string {
  const sections = [...new Set(plan.steps.map((step) => step.section))]
  const parts = sections.map((section) => {
    const rows = plan.steps
      .filter((step) => step.section === section)
      .map((step) => [
        String(step.step),
        step.name,
        `${step.call}(${step.args.map(short).join(', ')})`,
        result(step.expect),
      ])
    return `${paint.bold(section)}\n${columnsText(['STEP', 'WHAT', 'CALL', 'MUST'], rows, paint)}`
  })
  const head = `Profile ${plan.profile}: ${plan.steps.length} system calls in new namespaces ${plan.namespaces.join(', ')}.\n`
  return [head, ...parts].join('\n')
}

const LONGEST_ARGUMENT = 48

const short = (text: string): string =>
  text.length > LONGEST_ARGUMENT ? `${text.slice(0, LONGEST_ARGUMENT - 1)}…` : text

const result = (expect: string): string =>
  expect === 'ok' ? 'succeed' : expect === 'any' ? '' : `fail: ${expect}`
