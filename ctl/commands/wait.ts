import { jsonText } from '../json.ts'
import { bannerText } from '../render/banner.ts'
import { runStatus } from '../render/exit-status.ts'
import type { VerbRun } from '../verb.ts'

/** Ends as `run` would have ended. */
export const run: VerbRun = async (context, [id = '']) => {
  const engine = await context.engine()
  const { afterwards } = await engine.show(id)
  const outcome = await engine.finish(id)
  await context.print(context.json ? jsonText(outcome) : bannerText(outcome, context.paint))
  return runStatus(outcome, afterwards)
}
