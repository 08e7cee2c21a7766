import { jsonText } from '../../json.ts'
import { visibleText } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, paths) => {
  const { testRego } = await import('../../../daemon/policy-tools.ts')
  const { status, output } = await testRego(paths)
  await context.print(context.json ? jsonText({ ok: status === 0, output }) : visibleText(output))
  return status
}
