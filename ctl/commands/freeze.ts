import { jsonText } from '../json.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, [id = '']) => {
  const engine = await context.engine()
  const record = await engine.freeze(id)
  await context.print(context.json ? jsonText(record) : `Branch ${record.id} is ${record.reason}.\n`)
  return 0
}
