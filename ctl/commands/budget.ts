import { BUDGET_KINDS, type BudgetKind } from '../../daemon/contract/profile.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { parseBudgets } from '../budget-option.ts'
import { jsonText } from '../json.ts'
import type { VerbRun } from '../verb.ts'

/** Gives more of each budget that is named. */
export const run: VerbRun = async (context, [id = '', ...pairs]) => {
  const more = Object.entries(parseBudgets(pairs)).map(([kind, by]) => [known(kind), by] as const)
  const engine = await context.engine()
  for (const [kind, by] of more) {
    const record = await engine.extend(id, kind, by)
    const text = `Branch ${record.id} may use ${said(pairs, kind)} more; it is ${record.state}.\n`
    await context.print(context.json ? jsonText(record) : text)
  }
  return 0
}

/** As it was typed; of several, the last one counts. */
const said = (pairs: readonly string[], kind: string): string =>
  pairs.findLast((pair) => pair.startsWith(`${kind}=`)) ?? kind

function known(text: string): BudgetKind {
  const kind = BUDGET_KINDS.find((name) => name === text)
  if (kind !== undefined) return kind
  throw new PuzzledError('usage', `There is no budget "${text}"`, {
    hint: `Known: ${BUDGET_KINDS.join(', ')}`,
  })
}
