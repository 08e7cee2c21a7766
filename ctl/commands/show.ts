import { jsonText } from '../json.ts'
import { branchDetails } from '../render/branches.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, [id = '']) => {
  const engine = await context.reader()
  const record = await engine.show(id)
  await context.print(context.json ? jsonText(record) : branchDetails(record, context.paint))
  return 0
}
