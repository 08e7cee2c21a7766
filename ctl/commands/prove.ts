import { jsonText } from '../json.ts'
import { proofText } from '../render/proof.ts'
import { textOption, type VerbRun } from '../verb.ts'
import { VERSION } from '../version.ts'

/** Exit status 1 when something escaped. What was not verified is told and changes nothing. */
export const run: VerbRun = async (context, _args, options) => {
  const { proveHost, readProof, refuseTaken, writeProof } = await import('../../daemon/prove-host.ts')
  const file = textOption(options, 'verify')
  const { stateDir } = context
  if (file !== null) {
    const report = await readProof(file, { stateDir, keyFile: textOption(options, 'key') })
    await context.print(
      context.json
        ? jsonText(report)
        : `${proofText(report, context.paint, process.stdout.columns)}The signature is good.\n`,
    )
    return report.held ? 0 : 1
  }
  const place = textOption(options, 'report')
  if (place !== null) refuseTaken(place)
  const { report, envelope } = await proveHost({ stateDir, product: VERSION })
  if (place !== null) await writeProof(place, envelope)
  await context.print(
    context.json
      ? jsonText({ ...report, envelope })
      : proofText(report, context.paint, process.stdout.columns),
  )
  return report.held ? 0 : 1
}
