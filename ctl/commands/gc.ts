import { jsonText } from '../json.ts'
import { withProgress } from '../progress.ts'
import { bytesText } from '../render/sizes.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context) => {
  const engine = await context.engine()
  const removed = await withProgress('removing', engine.collect())
  const moved =
    removed.archived === 0 ? '' : `Moved ${removed.archived} segments of the audit log to its archive.\n`
  const text = `Removed ${removed.branches} branches and ${removed.commits} reverse changesets (${bytesText(removed.bytes)}).\n`
  await context.print(context.json ? jsonText(removed) : text + moved)
  return 0
}
