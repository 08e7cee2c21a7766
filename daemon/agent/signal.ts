import type { BranchRecord } from '../contract/branch.ts'
import type { SignalResult } from '../contract/engine.ts'
import type { BudgetKind } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Ports, RunningAgent } from './ports.ts'
import type { RunningAgents } from './running.ts'

/** Sends a named signal. STOP and CONT change the state of the branch; KILL tells the truth about survivors. */
export async function signalBranch(
  ports: Ports,
  running: RunningAgents,
  id: string,
  name: string,
): Promise<SignalResult> {
  const signal = name.toUpperCase().replace(/^SIG/, '')
  if (signal === 'STOP') {
    await freezeBranch(ports, running, id)
    return { terminated: 0, survivors: 0 }
  }
  if (signal === 'CONT') {
    await thawBranch(ports, running, id)
    return { terminated: 0, survivors: 0 }
  }
  const agent = await agentOf(ports, running, id)
  await ports.audit.record('signal', id, { signal })
  return agent.signal(signal)
}

export async function freezeBranch(ports: Ports, running: RunningAgents, id: string): Promise<BranchRecord> {
  const agent = await agentOf(ports, running, id)
  const watch = running.watchOf(id)
  await watch?.rest()
  try {
    const all = await agent.freeze()
    return await ports.store.move(id, 'frozen', all ? 'frozen as asked' : STILL_WAITING)
  } catch (error) {
    watch?.goOn()
    throw error
  }
}

export async function thawBranch(ports: Ports, running: RunningAgents, id: string): Promise<BranchRecord> {
  const agent = await agentOf(ports, running, id)
  // Its meter has stopped with it: an agent that went on now would have no budget at all.
  const watch = running.watchOf(id)
  const refusal = watch?.refusal()
  if (refusal) throw refusal
  const thawed = await ports.store.move(id, 'running', 'thawed as asked')
  await agent.thaw()
  watch?.goOn()
  return thawed
}

const STILL_WAITING =
  'frozen as asked; some of its processes wait inside the kernel (for a disk?) and stand still when they wake'

const IDLE: ReadonlySet<BranchRecord['state']> = new Set(['ready', 'stopped', 'held'])

/** More of one budget, kept in the record; an agent that stands still for it goes on. */
export async function extendBudget(
  ports: Ports,
  running: RunningAgents,
  id: string,
  kind: BudgetKind,
  by: number,
): Promise<BranchRecord> {
  const record = await ports.store.read(id)
  // Where nothing runs: for the next command in it. Deletions are the gate's, which has judged already.
  if (IDLE.has(record.state) && kind !== 'deletions') {
    const extensions = ports.budgets.extended(record, kind, by)
    await ports.audit.record('extend', id, { budget: kind, by })
    return ports.store.update(id, { extensions })
  }
  await agentOf(ports, running, id)
  const watch = running.watchOf(id)
  if (watch === undefined)
    throw new PuzzledError('wrong-state', `Branch ${id} has no budgets that are watched`)
  await ports.audit.record('extend', id, { budget: kind, by })
  const { resumed } = await watch.extend(kind, by)
  const { extensions } = await ports.store.read(id)
  // Behind the record of a freeze that is still being written: read before it, the state would be left at `frozen`.
  const extended = await ports.store.update(id, {
    extensions: { ...extensions, [kind]: (extensions[kind] ?? 0) + by },
  })
  return resumed && extended.state === 'frozen'
    ? ports.store.move(id, 'running', `${kind} was extended`)
    : extended
}

export async function agentOf(ports: Ports, running: RunningAgents, id: string): Promise<RunningAgent> {
  const record = await ports.store.read(id)
  if (record.state !== 'running' && record.state !== 'frozen')
    throw new PuzzledError('wrong-state', `Branch ${id} is ${record.state}; nothing runs in it`, {
      hint: `What its agent wrote: puzzlectl logs ${id}; what it changed: puzzlectl diff ${id}`,
    })
  const agent = await running.findStarted(id)
  if (agent === undefined)
    throw new PuzzledError('wrong-state', `Branch ${id} is run by another process`, {
      hint: 'Use the terminal that started it, or run the daemon: it holds all branches.',
    })
  return agent
}
