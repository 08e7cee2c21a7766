import { withProgress } from '../progress.ts'
import { requester } from '../requester.ts'
import { textOption, type VerbRun } from '../verb.ts'
import { showOutcome } from './outcome.ts'
import { selectionOf } from './selection.ts'

export const run: VerbRun = async (context, [id = ''], options) => {
  const engine = await context.engine()
  const outcome = await withProgress(
    'committing',
    engine.approve(id, {
      by: requester(),
      digest: textOption(options, 'digest'),
      selection: selectionOf(options),
      why: textOption(options, 'message') ?? '',
    }),
  )
  return showOutcome(context, outcome)
}
