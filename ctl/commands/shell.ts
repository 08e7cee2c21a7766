import { bannerId } from '../render/banner.ts'
import type { VerbRun } from '../verb.ts'
import { execForPerson, requestOf } from './exec.ts'

/** The best shell that the branch has. */
const SHELL = ['/bin/sh', '-c', 'command -v bash >/dev/null 2>&1 && exec bash; exec sh'] as const

/** An interactive shell: beside the agent where one runs, in its place where none does. */
export const run: VerbRun = async (context, [id = ''], options) => {
  const engine = await context.engine()
  const record = await engine.show(id)
  if (process.stdin.isTTY === true)
    await context.printError(
      context.paintErrors.dim(
        `puzzled: a shell in branch ${bannerId({ name: record.name, branch: record.id })}; what it changes belongs to the branch (exit ends it)\n`,
      ),
    )
  return execForPerson(context, engine, record, requestOf(SHELL, options))
}
