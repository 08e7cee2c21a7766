import { jsonText } from '../../json.ts'
import { userNames } from '../../person.ts'
import { type TracedRecord, traceTable } from '../../render/trace.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [branch = '']) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const audit = await openAudit(context.stateDir)
  const records: TracedRecord[] = []
  for await (const record of audit.trace(branch)) {
    if (context.json) await context.print(jsonText(record))
    else records.push(record)
  }
  if (context.json) return 0
  const names = userNames()
  await context.print(traceTable(records, (uid) => names.get(uid), context.paint, process.stdout.columns))
  return 0
}
