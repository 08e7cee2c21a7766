import type { Outcome, RunRequest } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { parseBudgets } from '../budget-option.ts'
import { connectDaemon } from '../engine.ts'
import { askedEnvironment } from '../environment-option.ts'
import { jsonText } from '../json.ts'
import { withProgress } from '../progress.ts'
import { BANNER_HANG, bannerText } from '../render/banner.ts'
import { errorText } from '../render/error.ts'
import { runStatus } from '../render/exit-status.ts'
import { runRequest } from '../request.ts'
import { parseRestart } from '../restart-option.ts'
import { ForwardedSignals } from '../signals.ts'
import { relay, sessionStdio, unattendedTerminal } from '../stdio.ts'
import {
  flagOption,
  listOption,
  type OptionValues,
  textOption,
  type VerbContext,
  type VerbRun,
} from '../verb.ts'
import { fromHere, workingDirectory } from '../working-directory.ts'

const TOO_LATE = 'puzzled: the agent has ended, and its branch is judged; the same again ends puzzlectl\n'

export const run: VerbRun = async (context, command, options) => {
  const request = requestOf(command, options)
  if (flagOption(options, 'detach')) return runDetached(context, request)
  const engine = await context.engine()
  const signals = new ForwardedSignals({
    failed: (error) => void context.printError(errorText(error, context.paintErrors)),
    tooLate: () => void context.printError(TOO_LATE),
  })
  let outcome: Outcome
  try {
    const session = await engine.run(request)
    signals.passTo((name) => engine.signal(session.id, name))
    await relay(session, { terminal: request.stdio.kind === 'pty' })
    signals.over()
    outcome = await withProgress('judging', engine.finish(session.id))
  } finally {
    signals.close()
  }
  if (context.json) await context.print(jsonText(outcome))
  else await context.printError(bannerText(outcome, context.paintErrors), BANNER_HANG)
  return runStatus(outcome, request.afterwards)
}

/** Somebody must hold the agent when this process has ended, and that is the daemon. */
async function runDetached(context: VerbContext, request: RunRequest): Promise<number> {
  const daemon = context.stateDir === null ? await connectDaemon() : null
  if (daemon === null)
    throw new PuzzledError('usage', '--detach needs the daemon, and none answers on the bus', {
      hint: 'sudo puzzlectl daemon install',
    })
  try {
    const session = await daemon.run(request)
    session.release()
    // Nobody here waits for the end; that this connection closes first is no news.
    session.exited.catch(() => undefined)
    await context.print(context.json ? jsonText({ branch: session.id }) : `${session.id}\n`)
    return 0
  } finally {
    await daemon.close()
  }
}

function stdioOf(options: OptionValues): RunRequest['stdio'] {
  const terminal = flagOption(options, 'tty')
  if (terminal && !flagOption(options, 'detach'))
    throw new PuzzledError('usage', '--tty is for --detach: at a terminal the command gets one anyway')
  if (terminal) return unattendedTerminal()
  return flagOption(options, 'detach') ? { kind: 'pipes' } : sessionStdio()
}

function requestOf(command: readonly string[], options: OptionValues): RunRequest {
  const bases = listOption(options, 'base').map((base) => fromHere(base))
  const cwd = textOption(options, 'cwd')
  return runRequest(command, {
    bases: bases.length === 0 ? [workingDirectory()] : bases,
    ...(cwd === null ? {} : { cwd: fromHere(cwd) }),
    profile: textOption(options, 'profile') ?? 'standard',
    name: textOption(options, 'name'),
    afterwards: afterwardsOf(textOption(options, 'then') ?? 'gate'),
    budgets: parseBudgets(listOption(options, 'budget')),
    setEnvironment: askedEnvironment(listOption(options, 'env')),
    stdio: stdioOf(options),
    restart: parseRestart(textOption(options, 'restart') ?? 'never'),
    unattended: flagOption(options, 'detach'),
  })
}

function afterwardsOf(text: string): RunRequest['afterwards'] {
  if (text === 'gate' || text === 'hold' || text === 'discard') return text
  throw new PuzzledError('usage', `--then ${text} is not known`, { hint: 'Use gate, hold or discard.' })
}
