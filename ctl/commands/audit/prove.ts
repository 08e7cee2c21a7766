import { PuzzledError } from '../../../daemon/lib/errors.ts'
import { jsonText } from '../../json.ts'
import { textOption, type VerbRun } from '../../verb.ts'

/** Proofs are for programs: JSON with and without `--json`. */
export const run: VerbRun = async (context, [record = ''], options) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const size = textOption(options, 'size')
  const upTo = size === null ? undefined : numberOf(size)
  const audit = await openAudit(context.stateDir)
  await context.print(jsonText(await audit.prove(numberOf(record), upTo)))
  return 0
}

function numberOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new PuzzledError('usage', `"${text}" is not the number of a record`)
}
