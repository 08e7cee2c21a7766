import { jsonText } from '../../json.ts'
import { visibleLine } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [branch = '']) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const audit = await openAudit(context.stateDir)
  for await (const record of audit.trace(branch)) {
    const { seq, time, kind, facts } = record
    const line = `${seq} ${context.paint.dim(time)} ${context.paint.bold(kind)} ${visibleLine(JSON.stringify(facts))}\n`
    await context.print(context.json ? jsonText(record) : line)
  }
  return 0
}
