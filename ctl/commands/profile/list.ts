import { jsonText } from '../../json.ts'
import { columnsText } from '../../render/columns.ts'
import { visibleLine } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context) => {
  const { listProfiles } = await import('../../../daemon/profile-tools.ts')
  const profiles = await listProfiles()
  const rows = profiles.map(({ name, description, problem }) => [
    name,
    visibleLine(problem === undefined ? description : `cannot be used: ${problem}`),
  ])
  await context.print(
    context.json ? jsonText(profiles) : columnsText(['PROFILE', 'DESCRIPTION'], rows, context.paint),
  )
  return profiles.some(({ problem }) => problem !== undefined) ? 1 : 0
}
