import { jsonText } from '../json.ts'
import type { VerbRun } from '../verb.ts'
import { firstFailure, statusOf } from './each.ts'

export const run: VerbRun = async (context, ids) => {
  const engine = await context.engine()
  const statuses: number[] = []
  for (const id of ids)
    statuses.push(
      await statusOf(context, async () => {
        const record = await engine.discard(id)
        await context.print(context.json ? jsonText(record) : `Branch ${record.id} is discarded.\n`)
        return 0
      }),
    )
  return firstFailure(statuses)
}
