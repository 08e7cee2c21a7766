import { jsonText } from '../json.ts'
import { branchDetails, DETAILS_AT } from '../render/branches.ts'
import { denialsText } from '../render/denials.ts'
import { usageText } from '../render/usage.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, [id = '']) => {
  const engine = await context.reader()
  const record = await engine.show(id)
  const [denials, usage] = await Promise.all([engine.denials(record.id), engine.usage(record.id)])
  await context.print(
    context.json
      ? jsonText({ ...record, usage, denials })
      : `${branchDetails(record, Date.now(), context.paint)}${usageText(usage, context.paint)}${denialsText(denials, context.paint)}`,
    context.json ? undefined : DETAILS_AT,
  )
  return 0
}
