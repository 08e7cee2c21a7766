import { exitStatusOf } from '../../../daemon/contract/errors.ts'
import { PuzzledError } from '../../../daemon/lib/errors.ts'
import { jsonText } from '../../json.ts'
import { textOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, _args, options) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const kept = keptHead(textOption(options, 'head'))
  const log = await openAudit(context.stateDir)
  const report = await log.verify(textOption(options, 'key'), kept)
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

/** As this verb printed it at another time. */
function keptHead(text: string | null): { size: number; root: string } | null {
  if (text === null) return null
  const [, size, root = ''] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? []
  if (size !== undefined) return { size: Number(size), root }
  throw new PuzzledError('usage', '--head is not of the form RECORDS:ROOT, as "audit verify" prints them')
}
