import { jsonText } from '../../json.ts'
import type { VerbRun } from '../../verb.ts'

/** What an auditor keeps elsewhere: with it nobody can forge a head. */
export const run: VerbRun = async (context) => {
  const { openAudit } = await import('../../../daemon/inspect-audit.ts')
  const key = await (await openAudit(context.stateDir)).publicKey()
  await context.print(context.json ? jsonText({ key }) : key)
  return 0
}
