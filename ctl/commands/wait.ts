import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { Engine } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { jsonText } from '../json.ts'
import { bannerText } from '../render/banner.ts'
import { runStatus } from '../render/exit-status.ts'
import type { VerbRun } from '../verb.ts'

/** Ends as `run` would have ended. */
export const run: VerbRun = async (context, [id = '']) => {
  const engine = await context.engine()
  const afterwards = await askedAfterwards(engine, id)
  const outcome = await engine.finish(id)
  await context.print(context.json ? jsonText(outcome) : bannerText(outcome, context.paint))
  return runStatus(outcome, afterwards)
}

/** The daemon knows how a branch ended also when it is gone; it has nothing left that could be anything but thrown away. */
async function askedAfterwards(engine: Engine, id: string): Promise<BranchRecord['afterwards']> {
  try {
    return (await engine.show(id)).afterwards
  } catch (error) {
    if (error instanceof PuzzledError && error.code === 'branch-unknown') return 'discard'
    throw error
  }
}
