import { jsonText } from '../json.ts'
import { doctorStatus, doctorText } from '../render/doctor.ts'
import type { VerbRun } from '../verb.ts'

export const run: VerbRun = async (context) => {
  const { diagnose } = await import('../../daemon/diagnose.ts')
  const report = await diagnose({ stateDir: context.stateDir })
  await context.print(
    context.json ? jsonText(report) : doctorText(report, context.paint, process.stdout.columns),
  )
  return doctorStatus(report)
}
