import { withProgress } from '../progress.ts'
import type { VerbRun } from '../verb.ts'
import { showOutcome } from './outcome.ts'

export const run: VerbRun = async (context, [commit = '']) => {
  const engine = await context.engine()
  return showOutcome(context, await withProgress('reverting', engine.revert(commit)))
}
