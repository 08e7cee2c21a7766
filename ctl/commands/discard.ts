import { jsonText } from '../json.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, ids) => {
  const engine = await context.engine()
  for (const id of ids) {
    const record = await engine.discard(id)
    await context.print(context.json ? jsonText(record) : `Branch ${record.id} is discarded.\n`)
  }
  return 0
}
