import { jsonText } from '../../json.ts'
import { visibleLine } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [from = '', to = '']) => {
  const { diffProfiles } = await import('../../../daemon/profile-tools.ts')
  const { lines, wider } = await diffProfiles(from, to)
  if (context.json) await context.print(jsonText({ lines, wider }))
  else {
    const { red, green, yellow } = context.paint
    for (const { sign, text } of lines)
      await context.print(`${(sign === '-' ? red : green)(`${sign} ${visibleLine(text)}`)}\n`)
    const names = `${visibleLine(to)} compared with ${visibleLine(from)}`
    await context.print(
      wider.length === 0
        ? `${names} grants nothing more.\n`
        : `${yellow(`${names} grants more:`)}\n${wider.map((each) => `  ${visibleLine(each)}\n`).join('')}`,
    )
  }
  return 0
}
