import type { AgentAgain, AgentExit, BranchRecord, Grant, RestartPolicy } from '../contract/branch.ts'
import type { CommandLimits, OutputEntry, SessionStdio } from '../contract/engine.ts'
import type { BudgetEnd, BudgetHooks, BudgetWatch, LaunchRequest, Ports, RunningAgent } from './ports.ts'
import type { RunningAgents } from './running.ts'

export interface StartRequest {
  environment: Readonly<Record<string, string>>
  setEnvironment: Readonly<Record<string, string>>
  stdio: SessionStdio
  limits?: CommandLimits
  restart?: RestartPolicy | null
  /** A command in the place of the branch's own, after that one has run: what is in the layers stays whatever happens. */
  again?: { command: readonly string[]; cwd: string }
}

/**
 * Starts the branch's command. `running` is durable before the process exists, so that a crash in between is found
 * by recovery and never a process without a record.
 */
export const startAgent = (
  ports: Ports,
  running: RunningAgents,
  record: BranchRecord,
  request: StartRequest,
): Promise<Started> => running.starting(record.id, () => start(ports, running, record, request))

interface Started {
  agent: RunningAgent
  exited: Promise<AgentExit>
}

async function start(
  ports: Ports,
  running: RunningAgents,
  record: BranchRecord,
  request: StartRequest,
): Promise<Started> {
  const limits = ports.budgets.left(record)
  const mounts = await ports.layers.mounts(record)
  const { command, cwd } = request.again ?? record
  const restart = request.restart ?? null
  await ports.audit.record('start', record.id, { command, cwd, ...(restart === null ? {} : { restart }) })
  const log = ports.outputs.open(record.id)
  const told = restartNotes(ports, record.id)
  const { budgets } = record.profile.resolved
  const atLimit = ports.budgets.atLimit(budgets.atLimit)
  const why = request.again === undefined ? 'the agent runs' : 'a command runs in its place'
  const moved = await ports.store.move(record.id, 'running', why, restart === null ? {} : { restart })
  const launch = {
    profile: { ...moved.profile.resolved, budgets: { limits, atLimit } },
    mounts,
    argv: command,
    cwd,
    environment: agentEnvironment(moved.profile.resolved.environment, request),
    stdio: request.stdio,
    observe: (stream: OutputEntry['stream'], bytes: Buffer) => log.write(stream, bytes),
    limits: request.limits ?? {},
    restart,
    restarting: told.add,
  }
  const agent = await launchOrAbandon(ports, moved, launch, request.again !== undefined)
  const grants = joined(record.grants, [...agent.grants, ...limitGrant(budgets.atLimit, atLimit)])
  const settle = async (exit: AgentExit, used: Used = {}): Promise<AgentExit> => {
    await Promise.all([log.end(), told.written()])
    // In a branch that was only created, the first command is the agent. And no command may hide in an agent's good end
    // that it has used too much.
    const own = request.again === undefined || record.state === 'ready' || exit.cause === 'budget'
    return recordExit(ports, record.id, exit, own, used)
  }
  const watch = await watchOrEnd(ports, record, atLimit, agent, settle)
  const exited = agent.exited.then(async (exit) => {
    // Whatever else fails: that the agent ended is recorded, and that nobody knows what it used.
    const end = await watch.stop(exit.cause === 'exited').catch((error: unknown): BudgetEnd => {
      const why = `Its meter did not stop: ${error}`
      warn(ports, record.id, why)
      return { used: {}, passed: true, why }
    })
    return settle(judged(exit, end), withCpuOf(exit, end.used, record.used ?? {}))
  })
  running.add(record.id, agent, watch, exited)
  try {
    await ports.store.update(record.id, { grants })
  } catch (error) {
    // What the kernel granted must be on record: without it the agent does not go on.
    await agent.kill('signal')
    await Promise.allSettled([exited])
    throw error
  }
  return { agent, exited }
}

type Used = NonNullable<BranchRecord['used']>

/** An agent that used more than it may has not ended well, whatever it says itself. */
const judged = (exit: AgentExit, { passed, why }: BudgetEnd): AgentExit => {
  const cause = passed && (exit.cause === 'exited' || exit.cause === 'signal') ? 'budget' : exit.cause
  return { ...exit, cause, ...(cause === 'budget' && why !== undefined ? { why } : {}) }
}

/** The meter reads now and then; what the kernel counted to the end is exact. */
const withCpuOf = (exit: AgentExit, used: Used, before: Used): Used => {
  if (used.cpu === undefined) return used
  const counted = (before.cpu ?? 0) + (exit.cpuUserMs + exit.cpuSystemMs) / 1000
  return { ...used, cpu: Math.max(used.cpu, counted) }
}

/** An agent whose budgets nobody watches must not go on. */
async function watchOrEnd(
  ports: Ports,
  record: BranchRecord,
  atLimit: LaunchRequest['profile']['budgets']['atLimit'],
  agent: RunningAgent,
  settle: (exit: AgentExit) => Promise<AgentExit>,
): Promise<BudgetWatch> {
  try {
    return ports.budgets.watch(record, atLimit, agent, budgetHooks(ports, record.id))
  } catch (error) {
    await agent.kill('signal')
    await settle(await agent.exited)
    throw error
  }
}

const warn = (ports: Ports, branch: string, message: string): void =>
  ports.events.publish({ kind: 'warning', branch, time: ports.clock.now().toISOString(), message })

const limitGrant = (wished: string, granted: string): Grant[] =>
  wished === granted ? [] : [{ what: 'budget at its limit', requested: wished, granted, full: false }]

/** What an earlier start was granted in the same matter no longer holds. */
const joined = (earlier: readonly Grant[], granted: readonly Grant[]): Grant[] => [
  ...earlier.filter(({ what }) => !granted.some((grant) => grant.what === what)),
  ...granted,
]

interface RestartNotes {
  add(again: AgentAgain): void
  written(): Promise<void>
}

/**
 * Whoever looks at the branch sees that it runs, and must not take that for all being well. The end waits for what is
 * written here: it must not change a branch that somebody decides about already, or that is gone.
 */
function restartNotes(ports: Ports, id: string): RestartNotes {
  let written = Promise.resolve()
  const write = async (again: AgentAgain, at: string): Promise<void> => {
    try {
      await ports.audit.record('restart', id, { ...again })
      await ports.store.update(id, { restarted: { ...again, at } })
    } catch (error) {
      warn(ports, id, `That it was started again is not on record: ${error}`)
    }
  }
  return {
    add: (again) => {
      const at = ports.clock.now().toISOString()
      ports.events.publish({ kind: 'restart', branch: id, time: at, ...again })
      written = written.then(() => write(again, at))
    },
    written: () => written,
  }
}

/** A crossing is an event; standing still is a state, put on record like any other. */
function budgetHooks(ports: Ports, id: string): BudgetHooks {
  return {
    crossed: (budget, used, limit, percent) =>
      ports.events.publish({
        kind: 'budget',
        branch: id,
        time: ports.clock.now().toISOString(),
        budget,
        used,
        limit,
        percent,
      }),
    exceeded: (message, action, facts) => {
      warn(ports, id, message)
      // Where the filesystem holds the limit, it is the one that refuses to write.
      const layer = facts.layer === 'quota' ? 'quota' : 'budget'
      ports.events.publish({
        ...{ kind: 'denial', branch: id, time: ports.clock.now().toISOString(), layer },
        ...{ subject: 'the agent', rule: layer, message },
        ...(action !== 'freeze' ? {} : { help: `puzzlectl budget ${id} KIND=AMOUNT gives it more` }),
      })
      ports.audit
        .record('budget', id, { ...facts, message, action })
        .catch((error: unknown) => warn(ports, id, `The budget is not on record: ${error}`))
      if (action !== 'freeze') return
      ports.store
        .move(id, 'frozen', message)
        .catch((error: unknown) => warn(ports, id, `The freeze is not on record: ${error}`))
    },
    spent: (used) => {
      ports.store
        .update(id, { used })
        .catch((error: unknown) => warn(ports, id, `What it used up is not on record: ${error}`))
    },
  }
}

async function launchOrAbandon(
  ports: Ports,
  record: BranchRecord,
  request: Omit<LaunchRequest, 'record'>,
  again: boolean,
): Promise<RunningAgent> {
  try {
    return await ports.launcher.start({ record, ...request })
  } catch (error) {
    // Where nothing ever ran, nothing is in the layers: such a branch is not worth keeping.
    await (again ? stopAgain(ports, record.id) : abandon(ports, record.id)).catch((left: unknown) =>
      warn(ports, record.id, `It is still there: ${left}`),
    )
    throw error
  }
}

async function stopAgain(ports: Ports, id: string): Promise<void> {
  await ports.launcher.sweep(id)
  await ports.store.move(id, 'stopped', 'a command could not be started in it')
}

async function abandon(ports: Ports, id: string): Promise<void> {
  await ports.launcher.sweep(id)
  await ports.store.move(id, 'stopped', 'the agent could not be started')
  await ports.store.move(id, 'discarding', 'the agent could not be started')
  await ports.store.discard(id)
}

/**
 * Nobody but this process runs agents of its store. A branch that is on record as running and is not run here has lost
 * the record of its end (a full disk): what it wrote is kept, and counts as what a failed agent left.
 */
export async function reclaim(ports: Ports, running: RunningAgents, id: string): Promise<void> {
  const record = await ports.store.read(id)
  if ((record.state !== 'running' && record.state !== 'frozen') || running.knows(id)) return
  await ports.launcher.sweep(id)
  const endedAt = ports.clock.now().toISOString()
  const use = { cpuUserMs: 0, cpuSystemMs: 0, maxRssBytes: 0 }
  await recordExit(ports, id, {
    ...{ code: null, signal: 'SIGKILL', cause: 'daemon-restart' },
    ...{ startedAt: record.updatedAt, endedAt, ...use },
  })
}

/** `own`: it was the agent of the branch. What ran in its place later must not make a failed agent a good one. */
async function recordExit(
  ports: Ports,
  id: string,
  exit: AgentExit,
  own = true,
  used: Used = {},
): Promise<AgentExit> {
  const what = exit.signal === null ? `exit status ${exit.code ?? '?'}` : `signal ${exit.signal}`
  await ports.store.move(
    id,
    'stopped',
    `the ${own ? 'agent' : 'command'} ended: ${exit.cause === 'exited' ? what : `${exit.cause}, ${what}`}`,
    { ...(own ? { exit } : {}), ...(Object.keys(used).length === 0 ? {} : { used }) },
  )
  await ports.audit.record('exit', id, { ...exit, own })
  return exit
}

/** Only names on the profile's list pass; what the profile sets wins; what the caller asked for by name comes last. */
export function agentEnvironment(
  grant: BranchRecord['profile']['resolved']['environment'],
  request: Pick<StartRequest, 'environment' | 'setEnvironment'>,
): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.environment))
    if (grant.pass.some((pattern) => matchesName(pattern, name))) passed[name] = value
  return { ...passed, ...grant.set, ...request.setEnvironment }
}

/** A trailing star stands for any rest: `LC_*`. */
const matchesName = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name
