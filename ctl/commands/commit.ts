import { withProgress } from '../progress.ts'
import type { VerbRun } from '../verb.ts'
import { showOutcome } from './outcome.ts'
import { selectionOf } from './selection.ts'

export const run: VerbRun = async (context, [id = ''], options) => {
  const engine = await context.engine()
  return showOutcome(
    context,
    await withProgress('committing', engine.commit(id, selectionOf(options) ?? undefined)),
  )
}
