import { visibleLine } from '../render/visible.ts'
import { listOption, type VerbRun } from '../verb.ts'
import { decisionStatus, showOutcome } from './outcome.ts'

export const run: VerbRun = async (context, [id = ''], options) => {
  const engine = await context.engine()
  const [ours, theirs, drop] = ['ours', 'theirs', 'drop'].map((name) => listOption(options, name))
  const outcome = await engine.rebase(id, { ours: ours ?? [], theirs: theirs ?? [], drop: drop ?? [] })
  if (context.json || outcome.conflicts.length === 0) return showOutcome(context, outcome)
  const lines = outcome.conflicts.map(
    ({ path, message }) => `${visibleLine(path)}: ${visibleLine(message)}\n`,
  )
  const count = outcome.conflicts.length
  await context.print(
    `${count} path${count === 1 ? '' : 's'} changed on both sides; nothing was made:\n${lines.join('')}` +
      'Decide with --ours (the branch), --theirs (the base) or --drop, each a path or glob.\n',
  )
  return decisionStatus(outcome)
}
