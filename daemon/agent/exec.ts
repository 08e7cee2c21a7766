import type { BranchRecord } from '../contract/branch.ts'
import type { Attachment, CommandRequest, CommandSession, SessionStreams } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Ports } from './ports.ts'
import type { RunningAgents } from './running.ts'
import { agentOf } from './signal.ts'
import { agentEnvironment, startAgent } from './start.ts'

/** Twenty days: timers cannot count further, and would fire at once. */
const LONGEST_SECONDS = 20 * 86_400

/**
 * A command in a branch: beside the agent where one runs, in its place where none does. What it changes is part of the
 * branch like everything else, and is judged with it: a review that was made before no longer fits. To be called with
 * the branch's lock held.
 */
export async function execInBranch(
  ports: Ports,
  running: RunningAgents,
  id: string,
  request: CommandRequest,
  by: number,
): Promise<CommandSession> {
  checkTimeout(request)
  const record = await ports.store.read(id)
  // Its state says that it ended before all is done that follows from it.
  if (RUNS_AGAIN.has(record.state)) await running.ended(id)
  return execIn(ports, running, record, request, by)
}

/** The same beside an agent, which needs no lock; null where the agent has ended meanwhile. */
export async function execBeside(
  ports: Ports,
  running: RunningAgents,
  id: string,
  request: CommandRequest,
  by: number,
): Promise<CommandSession | null> {
  checkTimeout(request)
  const record = await ports.store.read(id)
  return RUNS_AGAIN.has(record.state) ? null : execIn(ports, running, record, request, by)
}

function checkTimeout({ timeout }: CommandRequest): void {
  if (timeout !== null && !(timeout > 0 && timeout <= LONGEST_SECONDS))
    throw new PuzzledError('usage', `A time limit is more than 0 s and at most ${LONGEST_SECONDS} s`)
}

async function execIn(
  ports: Ports,
  running: RunningAgents,
  record: BranchRecord,
  request: CommandRequest,
  by: number,
): Promise<CommandSession> {
  refuseOtherStates(record)
  const { command } = request
  await ports.audit.record('exec', record.id, { command, cwd: request.cwd ?? record.cwd, by })
  return record.state === 'running'
    ? joinAgent(ports, running, record, request)
    : runAgain(ports, running, record, request)
}

const RUNS_AGAIN: ReadonlySet<BranchRecord['state']> = new Set(['ready', 'stopped', 'held'])

function refuseOtherStates({ id, state }: BranchRecord): void {
  if (state === 'running' || RUNS_AGAIN.has(state)) return
  if (state === 'frozen')
    // A process that is born into a frozen cgroup never gets as far as its first instruction.
    throw new PuzzledError('wrong-state', `Branch ${id} stands still`, { hint: `puzzlectl thaw ${id}` })
  throw new PuzzledError('wrong-state', `Branch ${id} is ${state}; nothing can run in it`, {
    hint: `puzzlectl show ${id}`,
  })
}

async function joinAgent(
  ports: Ports,
  running: RunningAgents,
  record: BranchRecord,
  request: CommandRequest,
): Promise<CommandSession> {
  const agent = await agentOf(ports, running, record.id)
  const command = await agent.exec({
    argv: request.command,
    cwd: request.cwd ?? record.cwd,
    environment: agentEnvironment(record.profile.resolved.environment, request),
    stdio: request.stdio,
    ...(request.timeout === null ? {} : { timeoutMillis: request.timeout * 1000 }),
    limits: request.limits ?? {},
  })
  return {
    ...streamsOf(command),
    exited: command.exited,
    resize: (columns, rows) => command.resize?.(columns, rows),
    signal: async (name) => void (await command.signal(name)),
  }
}

async function runAgain(
  ports: Ports,
  running: RunningAgents,
  record: BranchRecord,
  request: CommandRequest,
): Promise<CommandSession> {
  const begun = performance.now()
  const again = { command: request.command, cwd: request.cwd ?? record.cwd }
  const { agent, exited } = await startAgent(ports, running, record, { ...request, again })
  if (request.timeout !== null) {
    // Since the call, as for a command that joins: what the start took is part of it.
    const left = Math.max(0, request.timeout * 1000 - (performance.now() - begun))
    const timer = setTimeout(() => void agent.kill('timeout'), left)
    const stop = (): void => clearTimeout(timer)
    exited.then(stop, stop)
  }
  return {
    ...streamsOf(agent),
    exited,
    resize: (columns, rows) => agent.resize?.(columns, rows),
    signal: async (name) => void (await agent.signal(name)),
  }
}

/** One more reader of a running agent. */
export async function attachToAgent(ports: Ports, running: RunningAgents, id: string): Promise<Attachment> {
  const agent = await agentOf(ports, running, id)
  const { output, errors } = agent.attach()
  const readers = [output, errors].filter((reader) => reader !== undefined)
  return {
    ...(agent.input === undefined ? {} : { input: agent.input }),
    output,
    ...(errors === undefined ? {} : { errors }),
    terminal: agent.resize !== undefined,
    exited: running.exitOf(id) ?? agent.exited,
    resize: (columns, rows) => agent.resize?.(columns, rows),
    detach: () => {
      for (const reader of readers) (reader as NodeJS.ReadableStream & { destroy(): void }).destroy()
    },
  }
}

const streamsOf = ({
  input,
  output,
  errors,
}: Pick<SessionStreams, 'input' | 'output' | 'errors'>): Partial<SessionStreams> => ({
  ...(input === undefined ? {} : { input }),
  ...(output === undefined ? {} : { output }),
  ...(errors === undefined ? {} : { errors }),
})
