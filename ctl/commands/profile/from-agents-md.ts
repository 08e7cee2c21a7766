import { jsonText } from '../../json.ts'
import { visibleLine } from '../../render/visible.ts'
import { textOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [path = '.'], options) => {
  const { profileFromInstructions } = await import('../../../daemon/profile-tools.ts')
  const name = textOption(options, 'name') ?? 'project'
  const draft = await profileFromInstructions(path, name, textOption(options, 'extends') ?? 'standard')
  if (context.json) await context.print(jsonText(draft))
  else {
    await context.print(draft.yaml)
    const { length } = draft.taken
    await context.printError(
      length === 0
        ? 'Nothing in it forbids anything that a profile could say.\n'
        : `${length} sentences became limits:\n`,
    )
    for (const taken of draft.taken) await context.printError(`  ${visibleLine(taken)}\n`)
  }
  return 0
}
