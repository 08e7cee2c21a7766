import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { Engine } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { jsonText } from '../json.ts'
import { bannerText } from '../render/banner.ts'
import { runStatus } from '../render/exit-status.ts'
import type { VerbContext, VerbRun } from '../verb.ts'
import { firstFailure, statusOf } from './each.ts'

/** Ends as `run` would have ended; of several, every one is waited for at once and told of when it has ended. */
export const run: VerbRun = async (context, ids) => {
  const engine = await context.engine()
  const ended = [...new Set(ids)].map((id) => statusOf(context, () => waitFor(context, engine, id)))
  return firstFailure(await Promise.all(ended))
}

async function waitFor(context: VerbContext, engine: Engine, id: string): Promise<number> {
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
