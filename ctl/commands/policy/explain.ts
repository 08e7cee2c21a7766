import { jsonText } from '../../json.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [rule = '']) => {
  const { explainRule } = await import('../../../daemon/policy-tools.ts')
  const found = await explainRule(rule)
  const help = found.help === '' ? '' : `${found.help}\n`
  await context.print(
    context.json ? jsonText({ rule, ...found }) : `${rule}: ${found.weight}\n${found.means}\n${help}`,
  )
  return 0
}
