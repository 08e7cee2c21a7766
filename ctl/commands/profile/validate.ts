import { exitStatusOf } from '../../../daemon/contract/errors.ts'
import { jsonText } from '../../json.ts'
import { visibleLine } from '../../render/visible.ts'
import type { VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, names) => {
  const { validateProfile } = await import('../../../daemon/profile-tools.ts')
  const results: { profile: string; problems: readonly string[] }[] = []
  for (const name of names) results.push({ profile: name, problems: await validateProfile(name) })
  if (context.json) await context.print(jsonText(results))
  else
    for (const { profile, problems } of results)
      await context.print(
        problems.length === 0
          ? `${visibleLine(profile)}: ok\n`
          : `${problems.map((problem) => visibleLine(problem)).join('\n')}\n`,
      )
  return results.some(({ problems }) => problems.length > 0) ? exitStatusOf('profile-invalid') : 0
}
