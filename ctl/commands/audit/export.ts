import { textOption, type VerbRun } from '../../verb.ts'
import { VERSION } from '../../version.ts'

export const run: VerbRun = async (context, _args, options) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const audit = await openAudit(context.stateDir)
  const lines = audit.export(textOption(options, 'format') ?? 'jsonl', VERSION)
  for await (const text of lines) await context.print(text)
  return 0
}
