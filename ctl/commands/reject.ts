import { jsonText } from '../json.ts'
import { textOption, type VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, [id = ''], options) => {
  const engine = await context.engine()
  const record = await engine.reject(id, textOption(options, 'message') ?? '')
  await context.print(
    context.json ? jsonText(record) : `Branch ${record.id} is rejected; nothing of it was committed.\n`,
  )
  return 0
}
