import { DETACH_KEYS } from '../detach-keys.ts'
import { agentStatus } from '../render/exit-status.ts'
import { relay } from '../stdio.ts'
import type { VerbRun } from '../verb.ts'

/** Left to themselves they would end this process in the middle, and leave the terminal without echo. */
const LETTING_GO = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

/** What the agent shows, from a little before now on; what is typed goes to it. Ends with the agent, as it does. */
export const run: VerbRun = async (context, [id = '']) => {
  const engine = await context.engine()
  const session = await engine.attach(id)
  if (process.stdin.isTTY === true)
    await context.printError(
      context.paintErrors.dim(
        `puzzled: attached to ${id}; ${session.terminal ? `${DETACH_KEYS} lets go` : 'Ctrl-C lets go'}\n`,
      ),
    )
  if (session.terminal && process.stdout.isTTY === true)
    session.resize(process.stdout.columns || 80, process.stdout.rows || 24)
  const stopped = new Promise<null>((resolve) => {
    for (const name of LETTING_GO) process.once(name, () => resolve(null))
  })
  try {
    const options = { terminal: session.terminal, typeAlways: true, detachable: true, show: process.stdout }
    const exit = await Promise.race([relay(session, options), stopped])
    if (exit !== null) return agentStatus(exit)
    await context.printError(`${context.paintErrors.dim('puzzled: detached; the agent goes on')}\n`)
    return 0
  } finally {
    session.detach()
  }
}
