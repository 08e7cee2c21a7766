import type { AgentExit, BranchRecord } from '../../daemon/contract/branch.ts'
import type { CommandRequest, CommandSession, Engine } from '../../daemon/contract/engine.ts'
import { type Captured, capture } from '../capture.ts'
import { parseDuration } from '../duration-option.ts'
import { askedEnvironment, ownEnvironment } from '../environment-option.ts'
import { jsonText } from '../json.ts'
import { parseLimits } from '../limit-option.ts'
import { BANNER_HANG, bannerText, lostLines } from '../render/banner.ts'
import { errorText } from '../render/error.ts'
import { agentStatus } from '../render/exit-status.ts'
import { ForwardedSignals } from '../signals.ts'
import { relay, sessionStdio } from '../stdio.ts'
import { listOption, type OptionValues, textOption, type VerbContext, type VerbRun } from '../verb.ts'

/** Of each output in a structured result; what is more is counted. */
const CAPTURED_BYTES = 1 << 20

export const run: VerbRun = async (context, [id = '', ...command], options) => {
  const engine = await context.engine()
  const record = await engine.show(id)
  const request = requestOf(command, options)
  return context.json
    ? execForProgram(context, engine, record, request)
    : execForPerson(context, engine, record, request)
}

export function requestOf(command: readonly string[], options: OptionValues): Omit<CommandRequest, 'stdio'> {
  const timeout = textOption(options, 'timeout')
  return {
    command,
    cwd: textOption(options, 'cwd'),
    environment: ownEnvironment(),
    setEnvironment: askedEnvironment(listOption(options, 'env')),
    limits: parseLimits(listOption(options, 'limit')),
    timeout: timeout === null ? null : parseDuration(timeout, '--timeout'),
  }
}

/** As if it ran here: its streams, its terminal, its exit status. */
export async function execForPerson(
  context: VerbContext,
  engine: Engine,
  record: BranchRecord,
  request: Omit<CommandRequest, 'stdio'>,
): Promise<number> {
  const stdio = sessionStdio()
  const start = (): Promise<CommandSession> => engine.exec(record.id, { ...request, stdio })
  const report = (error: unknown): void => void context.printError(errorText(error, context.paintErrors))
  const exit = await withSignals(start, report, async (session) => {
    await relay(session, { terminal: stdio.kind === 'pty' })
    return session.exited
  })
  if (exit.cause === 'timeout' || exit.cause === 'oom' || exit.cause === 'budget')
    await context.printError(`${context.paintErrors.bold('puzzled:')} ${CAUSES[exit.cause]}\n`)
  for (const line of lostLines(exit, context.paintErrors)) await context.printError(`${line}\n`)
  await judgeAgain(context, engine, record)
  return agentStatus(exit)
}

async function withSignals<Result>(
  start: () => Promise<CommandSession>,
  failed: (error: unknown) => void,
  work: (session: CommandSession) => Promise<Result>,
): Promise<Result> {
  const signals = new ForwardedSignals({ failed, tooLate: () => undefined })
  try {
    const session = await start()
    signals.passTo((name) => session.signal(name))
    return await work(session)
  } finally {
    signals.close()
  }
}

const CAUSES = {
  timeout: 'the command was ended at its time limit',
  oom: 'the command was ended because it used too much memory',
  budget: 'the command was ended because a budget of its branch is used up',
} as const

/** Beside a running agent nothing is decided yet. Elsewhere a review from before no longer fits what the branch holds. */
async function judgeAgain(context: VerbContext, engine: Engine, before: BranchRecord): Promise<void> {
  if (before.state === 'running') return
  const outcome = await engine.review(before.id)
  await context.printError(bannerText(outcome, context.paintErrors), BANNER_HANG)
}

async function execForProgram(
  context: VerbContext,
  engine: Engine,
  record: BranchRecord,
  request: Omit<CommandRequest, 'stdio'>,
): Promise<number> {
  const start = (): Promise<CommandSession> =>
    engine.exec(record.id, { ...request, stdio: { kind: 'pipes' } })
  const [exit, stdout, stderr] = await withSignals(
    start,
    () => undefined,
    (session) => {
      session.input?.end()
      return Promise.all([
        session.exited,
        capture(session.output, CAPTURED_BYTES),
        capture(session.errors, CAPTURED_BYTES),
      ])
    },
  )
  if (record.state !== 'running') await engine.review(record.id)
  await context.print(jsonText(effectOf(record.id, request.command, exit, { stdout, stderr })))
  return agentStatus(exit)
}

function effectOf(
  branch: string,
  command: readonly string[],
  exit: AgentExit,
  output: { stdout: Captured; stderr: Captured },
): object {
  const durationMs = Date.parse(exit.endedAt) - Date.parse(exit.startedAt)
  return { branch, command, ...exit, durationMs, ...output }
}
