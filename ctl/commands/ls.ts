import { isTerminal } from '../../daemon/contract/states.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { jsonText } from '../json.ts'
import { branchTable } from '../render/branches.ts'
import { flagOption, type VerbRun } from '../verb.ts'

export const run: VerbRun = async (context, _args, options) => {
  const quiet = flagOption(options, 'quiet')
  if (quiet && context.json)
    throw new PuzzledError('usage', '--quiet and --json cannot be had together', {
      hint: 'Each element of the list that --json prints has its id.',
    })
  const engine = await context.reader()
  const all = await engine.list()
  const branches = flagOption(options, 'all') ? all : all.filter((branch) => !isTerminal(branch.state))
  if (context.json) await context.print(jsonText(branches))
  else if (quiet) await context.print(branches.map(({ id }) => `${id}\n`).join(''))
  else if (branches.length > 0)
    await context.print(branchTable(branches, Date.now(), context.paint, process.stdout.columns))
  else
    await context.printError(
      all.length === 0 ? 'No branches yet.\n' : 'No open branches (--all shows the others).\n',
    )
  return 0
}
