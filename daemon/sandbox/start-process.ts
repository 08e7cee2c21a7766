import { closeSync } from 'node:fs'
import type { AgentAgain } from '../contract/branch.ts'
import type { CommandLimits } from '../contract/engine.ts'
import type { SpawnOp, SpawnRequest, SpawnResult } from '../contract/spawn.ts'
import { createCgroup, openCgroup, removeCgroup } from '../kernel/cgroup.ts'
import { spawn } from '../kernel/clone.ts'
import { socketPair } from '../kernel/descriptor-passing.ts'
import { initExecutable } from '../kernel/init-program.ts'
import { pipe } from '../kernel/pipe.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { UndoStack } from '../lib/undo.ts'
import { limitCommand } from './command-limits.ts'
import { adoptFrom, type ExecGate } from './exec-gate.ts'
import type { OutputObserver } from './handed-through.ts'
import { HeldProcess } from './held-process.ts'
import { watchInit } from './init-status.ts'
import { type LockDescriptors, opsOf, type SpawnPlan } from './spawn-plan.ts'
import { commandError, startError } from './start-error.ts'
import { openStdio, type StdioRequest } from './stdio.ts'

export interface ProcessRequest {
  readonly stdio: StdioRequest
  /** The agent's devpts mount. */
  readonly terminals: number
  readonly owner: { readonly uid: number; readonly gid: number }
  /** Made here when missing; the process is born in it. */
  readonly cgroup: string
  /** What signals, freezing and the end act on; the cgroup itself or one above it. */
  readonly extent: string
  /** Of this process and what it starts; those of the cgroup above hold as well. */
  readonly limits: CommandLimits
  readonly command: string
  readonly namespaces: SpawnRequest['namespaces']
  /** The plan for descriptors that exist only now. Asked for while the child is born: it opens none for the child. */
  readonly plan: (descriptors: LockDescriptors, terminal: boolean, listenerSocket: number | null) => SpawnPlan
  /** Counts the programs that the process starts, where the profile limits them. */
  readonly execGate: ExecGate | null
  readonly onCollected: () => void
  /** Is given what settles when the first program runs, or when nothing will. */
  readonly spawning?: (spawning: Promise<unknown>) => void
  /** Of `performance.now()`: it is killed then, also when its first program does not run yet. */
  readonly deadline?: number
  readonly observe?: OutputObserver
  readonly restarting?: (again: AgentAgain) => void
}

/**
 * Runs a plan and waits until init says that the first program runs. A failure is an error that names the step or the
 * command; what was made until then is on the undo stack.
 */
export async function startProcess(request: ProcessRequest, undo: UndoStack): Promise<HeldProcess> {
  createCgroup(request.cgroup)
  undo.push('remove the cgroup of the process', () => {
    removeCgroup(request.cgroup)
  })
  limitCommand(request.cgroup, request.limits)
  const stdio = openStdio(request.stdio, request.terminals, request.owner, request.observe)
  undo.push('close the descriptors of the process', stdio.abandon)
  const status = pipe()
  const [closeWriter, closeReader] = [closer(status.write), closer(status.read)]
  undo.push('close the status pipe', () => {
    closeWriter()
    closeReader()
  })
  const sockets = request.execGate === null ? null : openSockets(undo)
  const descriptors = { init: initExecutable(), status: status.write, stdio: stdio.child }
  let total = 0
  const ops = (): readonly SpawnOp[] => {
    const plan = request.plan(descriptors, stdio.terminal, sockets?.theirs ?? null)
    requireNamespaces(plan.namespaces, request.namespaces)
    const list = opsOf(plan)
    total = list.length
    return list
  }
  const running = runPlan({ ops, namespaces: request.namespaces }, request.cgroup)
  request.spawning?.(running)
  // While the child works: it needs nothing of it, and cannot fail for a pipe that was just made.
  const watched = watchInit(status.read, request.restarting)
  closeReader.handOver()
  undo.push('stop watching init', watched.stop)
  if (sockets !== null && request.execGate !== null) await adoptFrom(sockets.ours, request.execGate, running)
  const result = await running
  sockets?.close()
  closeWriter()
  stdio.closeChildEnds()
  if (!result.ok) throw startError({ ...result, total })
  const process = new HeldProcess({
    pid: result.pid,
    pidfd: result.pidfd,
    cgroup: request.extent,
    own: request.cgroup,
    status: watched,
    startedAt: new Date(),
    streams: stdio.streams(),
    onCollected: request.onCollected,
  })
  undo.push('end the process', () => process.abandon())
  if (request.deadline !== undefined) process.endAfter(request.deadline - performance.now())
  const first = await process.started
  if (first !== 'gone' && 'errnoName' in first) throw commandError(request.command, first.errnoName)
  return process
}

/** A child that lacks a namespace which its plan counts on must not run. */
function requireNamespaces(planned: SpawnRequest['namespaces'], made: SpawnRequest['namespaces']): void {
  if (planned.join() !== made.join())
    throw new PuzzledError(
      'internal',
      `A start was planned for the namespaces "${planned.join(' ')}" and born with "${made.join(' ')}"`,
    )
}

function openSockets(undo: UndoStack): { ours: number; theirs: number; close(): void } {
  const { ours, theirs } = socketPair()
  const closers = [closer(ours), closer(theirs)]
  const close = (): void => {
    for (const end of closers) end()
  }
  undo.push('close the sockets of the listener', close)
  return { ours, theirs, close }
}

async function runPlan(request: Omit<SpawnRequest, 'cgroupFd'>, cgroup: string): Promise<SpawnResult> {
  const cgroupFd = openCgroup(cgroup)
  try {
    return await spawn({ ...request, cgroupFd })
  } finally {
    closeSync(cgroupFd)
  }
}

/** Closes at most once; not at all after somebody else took the descriptor over. */
export function closer(descriptor: number): (() => void) & { handOver(): void } {
  let ours = true
  const close = (): void => {
    if (ours) closeSync(descriptor)
    ours = false
  }
  return Object.assign(close, {
    handOver: () => {
      ours = false
    },
  })
}
