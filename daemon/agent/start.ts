import type { AgentExit, BranchRecord, Grant } from '../contract/branch.ts'
import type { SessionStdio } from '../contract/engine.ts'
import type { BudgetHooks, Ports, RunningAgent } from './ports.ts'
import type { RunningAgents } from './running.ts'

export interface StartRequest {
  environment: Readonly<Record<string, string>>
  setEnvironment: Readonly<Record<string, string>>
  stdio: SessionStdio
}

/**
 * Starts the branch's command. `running` is durable before the process exists, so that a crash in between is found
 * by recovery and never a process without a record.
 */
export async function startAgent(
  ports: Ports,
  running: RunningAgents,
  record: BranchRecord,
  request: StartRequest,
): Promise<{ agent: RunningAgent; exited: Promise<AgentExit> }> {
  const mounts = await ports.layers.mounts(record)
  await ports.audit.record('start', record.id, { command: record.command, cwd: record.cwd })
  const moved = await ports.store.move(record.id, 'running', 'the agent runs')
  const agent = await launchOrAbandon(ports, moved, mounts, request)
  const { budgets } = record.profile.resolved
  const atLimit = ports.budgets.atLimit(budgets.atLimit)
  const grants = [...record.grants, ...agent.grants, ...limitGrant(budgets.atLimit, atLimit)]
  await ports.store.update(record.id, { grants })
  const watch = ports.budgets.watch(record.id, { ...budgets, atLimit }, agent, budgetHooks(ports, record.id))
  const exited = agent.exited.then(async (exit) => {
    await watch.stop()
    return recordExit(ports, record.id, exit)
  })
  running.add(record.id, agent, watch, exited)
  return { agent, exited }
}

const limitGrant = (wished: string, granted: string): Grant[] =>
  wished === granted ? [] : [{ what: 'budget at its limit', requested: wished, granted, full: false }]

/** A crossing is an event; standing still is a state, put on record like any other. */
function budgetHooks(ports: Ports, id: string): BudgetHooks {
  const warn = (message: string): void =>
    ports.events.publish({ kind: 'warning', branch: id, time: ports.clock.now().toISOString(), message })
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
    exceeded: (message, action) => {
      warn(message)
      if (action === 'kill') return
      ports.store
        .move(id, 'frozen', message)
        .catch((error: unknown) => warn(`The freeze is not on record: ${error}`))
    },
  }
}

async function launchOrAbandon(
  ports: Ports,
  record: BranchRecord,
  mounts: Awaited<ReturnType<Ports['layers']['mounts']>>,
  request: StartRequest,
): Promise<RunningAgent> {
  const profile = record.profile.resolved
  try {
    return await ports.launcher.start({
      record,
      profile,
      mounts,
      argv: record.command,
      cwd: record.cwd,
      environment: agentEnvironment(profile.environment, request),
      stdio: request.stdio,
    })
  } catch (error) {
    // Nothing ran, so nothing is in the layers: the branch is not worth keeping.
    await ports.launcher.sweep(record.id)
    await ports.store.move(record.id, 'stopped', 'the agent could not be started')
    await ports.store.move(record.id, 'discarding', 'the agent could not be started')
    await ports.store.discard(record.id)
    throw error
  }
}

async function recordExit(ports: Ports, id: string, exit: AgentExit): Promise<AgentExit> {
  const what = exit.signal === null ? `exit status ${exit.code ?? '?'}` : `signal ${exit.signal}`
  await ports.store.move(
    id,
    'stopped',
    `the agent ended: ${exit.cause === 'exited' ? what : `${exit.cause}, ${what}`}`,
    {
      exit,
    },
  )
  await ports.audit.record('exit', id, { ...exit })
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
