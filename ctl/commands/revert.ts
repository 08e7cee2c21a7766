import type { VerbRun } from '../verb.ts'
import { showOutcome } from './outcome.ts'

export const run: VerbRun = async (context, [commit = '']) => {
  const engine = await context.engine()
  return showOutcome(context, await engine.revert(commit))
}
