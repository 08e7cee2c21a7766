import { jsonText } from '../json.ts'
import { withProgress } from '../progress.ts'
import { bytesText, countText } from '../render/sizes.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context) => {
  const engine = await context.engine()
  const removed = await withProgress('removing', engine.collect())
  const { branches, commits, archived } = removed
  const moved =
    archived === 0 ? '' : `Moved ${countText(archived, 'segment')} of the audit log to its archive.\n`
  const what = `${countText(branches, 'branch', 'branches')} and ${countText(commits, 'reverse changeset')}`
  const text =
    branches + commits === 0
      ? 'There was nothing to remove.\n'
      : `Removed ${what} (${bytesText(removed.bytes)}).\n`
  await context.print(context.json ? jsonText(removed) : text + moved)
  return 0
}
