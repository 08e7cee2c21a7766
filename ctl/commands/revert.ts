import { jsonText } from '../json.ts'
import { withProgress } from '../progress.ts'
import { revertText } from '../render/banner.ts'
import type { VerbRun } from '../verb.ts'

/** A revert that does not land throws: there is one outcome. */
export const run: VerbRun = async (context, [commit = '']) => {
  const engine = await context.engine()
  const outcome = await withProgress('reverting', engine.revert(commit))
  await context.print(context.json ? jsonText(outcome) : revertText(outcome, context.paint))
  return 0
}
