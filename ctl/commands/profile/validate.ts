import { exitStatusOf } from '../../../daemon/contract/errors.ts'
import { jsonText } from '../../json.ts'
import { visibleLine } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, names) => {
  const { profileWarnings, validateProfile } = await import('../../../daemon/profile-tools.ts')
  const results: { profile: string; problems: readonly string[]; warnings: readonly string[] }[] = []
  for (const profile of names) {
    const problems = await validateProfile(profile)
    results.push({ profile, problems, warnings: problems.length === 0 ? await profileWarnings(profile) : [] })
  }
  if (context.json) await context.print(jsonText(results))
  else
    for (const { profile, problems, warnings } of results) {
      for (const warning of warnings) await context.print(`warning: ${visibleLine(warning)}\n`)
      await context.print(
        problems.length === 0
          ? `${visibleLine(profile)}: ok\n`
          : `${problems.map((problem) => visibleLine(problem)).join('\n')}\n`,
      )
    }
  return results.some(({ problems }) => problems.length > 0) ? exitStatusOf('profile-invalid') : 0
}
