import { exitStatusOf } from '../../../daemon/contract/errors.ts'
import { PuzzledError } from '../../../daemon/lib/errors.ts'
import { jsonText } from '../../json.ts'
import { verdictText } from '../../render/verdict.ts'
import { listOption, textOption, type VerbRun } from '../../verb.ts'

export const run: VerbRun = async (context, _args, options) => {
  const changeset = textOption(options, 'changeset')
  if (changeset === null) throw new PuzzledError('usage', 'Which changeset? Name it with --changeset FILE')
  const { evalChangeset } = await import('../../../daemon/policy-tools.ts')
  const verdict = await evalChangeset({
    changeset,
    policies: listOption(options, 'policy'),
    profile: textOption(options, 'profile') ?? 'standard',
  })
  await context.print(context.json ? jsonText(verdict) : verdictText(verdict, context.paint))
  if (verdict.kind === 'allow') return 0
  return exitStatusOf(verdict.kind === 'deny' ? 'denied' : 'held')
}
