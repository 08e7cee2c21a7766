import { exitStatusOf } from '../../../daemon/contract/errors.ts'
import { jsonText } from '../../json.ts'
import { textOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, _args, options) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const report = await (await openAudit(context.stateDir)).verify(textOption(options, 'key'))
  const { bad, records, heads, signed, root } = report
  // The head itself is the record that it does not sign.
  const later = records - signed - 1
  const text =
    bad === null
      ? `${records} records, ${heads} signed heads: all fit.\n${later > 0 ? `The last ${later} are not signed yet: a head ends each segment, and the log when the daemon stops.\n` : ''}root ${root}\n`
      : `Record ${bad.seq} is wrong: ${bad.why} (${bad.segment}, byte ${bad.offset})\n`
  await context.print(context.json ? jsonText(report) : text)
  return bad === null ? 0 : exitStatusOf('audit-failed')
}
