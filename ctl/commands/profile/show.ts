import { jsonText } from '../../json.ts'
import { columnsText } from '../../render/columns.ts'
import { visibleLine } from '../../render/visible.ts'
import { flagOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [name = ''], options) => {
  const { showProfile } = await import('../../../daemon/profile-tools.ts')
  const { profile, sha256, files, lines } = await showProfile(name)
  if (context.json) await context.print(jsonText({ profile, sha256, files }))
  else {
    const why = flagOption(options, 'why')
    const rows = lines.map((line) => {
      const reason = why && line.why !== null ? `  # ${line.why}` : ''
      return [visibleLine(line.origin ?? 'by default'), visibleLine(line.text + reason)]
    })
    await context.print(`${profile.name}: ${visibleLine(profile.description)}\n\n`)
    await context.print(columnsText(['SAID BY', 'GRANT OR LIMIT'], rows, context.paint))
  }
  return 0
}
