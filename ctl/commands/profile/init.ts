import { textOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, [name = ''], options) => {
  const { initProfile } = await import('../../../daemon/profile-tools.ts')
  await context.print(await initProfile(name, textOption(options, 'extends') ?? 'standard'))
  return 0
}
