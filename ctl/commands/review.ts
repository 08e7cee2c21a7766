import { jsonText } from '../json.ts'
import { branchDetails } from '../render/branches.ts'
import type { VerbRun } from '../verb.ts'
import { decisionStatus } from './outcome.ts'

export const run: VerbRun = async (context, [id = '']) => {
  const engine = await context.engine()
  const outcome = await engine.review(id)
  await context.print(context.json ? jsonText(outcome) : branchDetails(await engine.show(id), context.paint))
  return decisionStatus(outcome)
}
