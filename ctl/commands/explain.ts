import { homedir } from 'node:os'
import { jsonText } from '../json.ts'
import { planText } from '../render/plan.ts'
import { requester } from '../requester.ts'
import { listOption, textOption, type VerbRun } from '../verb.ts'
import { workingDirectory } from '../working-directory.ts'

export const run: VerbRun = async (context, command, options) => {
  const { explainRun } = await import('../../daemon/explain.ts')
  const cwd = workingDirectory()
  const bases = listOption(options, 'base')
  const plan = await explainRun({
    profile: textOption(options, 'profile') ?? 'standard',
    bases: bases.length === 0 ? [cwd] : bases,
    cwd,
    command,
    requester: requester(),
    home: homedir(),
  })
  await context.print(context.json ? jsonText(plan) : planText(plan, context.paint))
  return 0
}
