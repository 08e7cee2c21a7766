import { PuzzledError } from '../../../daemon/lib/errors.ts'
import { jsonText } from '../../json.ts'
import { textOption, type VerbRun } from '../../verb.ts'

/** Proofs are for programs: JSON with and without `--json`. */
export const run: VerbRun = async (context, [record = ''], options) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const [size, since] = [textOption(options, 'size'), textOption(options, 'since')]
  const upTo = size === null ? undefined : numberOf(size)
  if ((since === null) === (record === '') || (since !== null && size !== null))
    throw new PuzzledError('usage', 'A proof is of one record, or of what came --since so many of them')
  const log = await openAudit(context.stateDir)
  const proof = since === null ? log.prove(numberOf(record), upTo) : log.proveGrowth(numberOf(since))
  await context.print(jsonText(await proof))
  return 0
}

function numberOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new PuzzledError('usage', `"${text}" is not the number of a record`)
}
