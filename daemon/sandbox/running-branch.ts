import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentExit, Grant } from '../contract/branch.ts'
import type { CommandLimits, PressureResource, PressureShares } from '../contract/engine.ts'
import type { BudgetKind } from '../contract/profile.ts'
import { cgroupUsage, pressureOf, privateMemoryOf, processesOf } from '../kernel/cgroup.ts'
import { limitCgroup } from '../kernel/cgroup-limits.ts'
import { CpuClock } from '../kernel/cpu-clock.ts'
import { duplicate } from '../kernel/pipe.ts'
import { PuzzledError } from '../lib/errors.ts'
import { UndoStack } from '../lib/undo.ts'
import { sliceOf } from './cgroups.ts'
import type { ExecGate } from './exec-gate.ts'
import type { OutputObserver } from './handed-through.ts'
import { endedError, type HeldProcess, type KillResult } from './held-process.ts'
import { extendedLimits } from './kernel-limits.ts'
import { OutputHub } from './output-hub.ts'
import type { OverlayLayers } from './places.ts'
import { signalAct } from './signals.ts'
import { joinPlan } from './spawn-plan.ts'
import { checkCommand, checkDirectory } from './start-error.ts'
import { startProcess } from './start-process.ts'
import type { StdioRequest } from './stdio.ts'
import { environmentOf, execNotifyOf, type World } from './world.ts'

export interface ExecRequest {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly environment: Readonly<Record<string, string>>
  readonly stdio: StdioRequest
  /** Of this command alone. */
  readonly limits?: CommandLimits
  /** Since the call; after it the command and all of its processes are killed, and its exit says `timeout`. */
  readonly timeoutMillis?: number
}

interface Used {
  readonly cpu: number
  readonly memory: number
  readonly pids: number
}

interface RunningParts {
  readonly world: World
  readonly process: HeldProcess
  readonly cgroup: string
  readonly terminals: number
  readonly grants: readonly Grant[]
  readonly execGate: ExecGate | null
  readonly layers: readonly OverlayLayers[]
  readonly observe: OutputObserver
}

/** Whatever runs stands still within this time. */
const MOMENT_MILLIS = 250
/** An agent that is about to be gone is so within this time. */
const END_MILLIS = 250

/** A branch whose agent runs: the agent itself, readers of its output, and commands that join it. */
export class RunningBranch {
  readonly pid: number
  readonly grants: readonly Grant[]
  readonly exited: Promise<AgentExit>
  readonly cgroup: string
  readonly input?: NodeJS.WritableStream
  readonly output?: NodeJS.ReadableStream
  readonly errors?: NodeJS.ReadableStream
  readonly resize?: (columns: number, rows: number) => void
  readonly #parts: RunningParts
  readonly #hub: OutputHub | undefined
  readonly #errorHub: OutputHub | undefined
  #commands = 0
  readonly #starting = new Set<Promise<unknown>>()
  #stands = false
  readonly #clock: CpuClock
  #last: { readonly micros: number; readonly used: Used } | undefined

  constructor(parts: RunningParts) {
    const { process, observe } = parts
    const hub = (source: NodeJS.ReadableStream | undefined, stream: 'stdout' | 'stderr') =>
      source === undefined ? undefined : new OutputHub(source, (chunk) => observe(stream, chunk))
    this.#parts = parts
    this.pid = process.pid
    this.grants = parts.grants
    this.cgroup = parts.cgroup
    this.#clock = new CpuClock(parts.cgroup, sliceOf(parts.cgroup))
    this.#hub = hub(process.output, 'stdout')
    this.#errorHub = hub(process.errors, 'stderr')
    if (process.input !== undefined) this.input = process.input
    if (this.#hub !== undefined) this.output = this.#hub.first
    if (this.#errorHub !== undefined) this.errors = this.#errorHub.first
    if (process.resize !== undefined) this.resize = process.resize
    this.exited = process.exited.finally(() => this.#clock.close())
  }

  async signal(name: string): Promise<KillResult> {
    const { kind } = signalAct(name)
    if (kind === 'freeze') {
      await this.freeze()
      return { terminated: 0, survivors: processesOf(this.cgroup).length }
    }
    if (kind === 'thaw') this.#stands = false
    return await this.#parts.process.signal(name)
  }

  kill(reason: AgentExit['cause']): Promise<KillResult> {
    return this.#parts.process.kill(reason)
  }

  /**
   * A command that is frozen before its first program runs holds a thread of the daemon, and there are few: what is being
   * started gets there first, and nothing more is started.
   */
  async freeze(): Promise<boolean> {
    this.#stands = true
    try {
      await Promise.allSettled(this.#starting)
      if (await this.#parts.process.freeze(MOMENT_MILLIS)) return true
      // What the gate holds cannot be frozen, and goes nowhere: to wait for it is to wait in vain.
      return this.#parts.execGate?.holds === true ? false : await this.#parts.process.freeze()
    } catch (error) {
      this.#stands = false
      throw error
    }
  }

  thaw(): Promise<void> {
    this.#stands = false
    return this.#parts.process.thaw()
  }

  /** What the branch uses now, for its budgets: seconds, bytes, counts. */
  readings(): { cpu: number; memory: number; pids: number; exec?: number } {
    return {
      ...this.#used(),
      ...(this.#parts.execGate === null ? {} : { exec: this.#parts.execGate.count }),
    }
  }

  /** Whoever used no processor since the last look has neither more memory nor more processes. */
  #used(): Used {
    const micros = this.#clock.read()
    if (this.#last?.micros === micros) return this.#last.used
    // Its cgroup may be gone.
    if (this.#parts.process.hasEnded) return this.#last?.used ?? { cpu: micros / 1e6, memory: 0, pids: 0 }
    const usage = cgroupUsage(this.cgroup)
    const used = {
      cpu: (usage.cpuUserMicros + usage.cpuSystemMicros) / 1e6,
      memory: usage.memoryBytes ?? privateMemoryOf(this.cgroup),
      pids: usage.processes,
    }
    this.#last = { micros, used }
    return used
  }

  /** How long processes of the branch waited for a resource in vain; null where the kernel does not say. */
  pressure(resource: PressureResource): PressureShares | null {
    return pressureOf(this.cgroup, resource)
  }

  /** A budget was extended: what the kernel or the exec gate holds is moved with it; held programs go on. */
  extend(kind: BudgetKind, limit: number): void {
    if (kind === 'exec') this.#parts.execGate?.setLimit(limit)
    if (!this.#parts.process.hasEnded)
      limitCgroup(this.cgroup, extendedLimits(this.#parts.world.profile, kind, limit))
  }

  /** One more reader of the output: what was last written, then all that follows. Destroying the streams detaches. */
  attach(): { output: NodeJS.ReadableStream; errors?: NodeJS.ReadableStream } {
    if (this.#hub === undefined)
      throw new PuzzledError('wrong-state', 'The output of this agent goes to descriptors of its caller', {
        hint: 'Start it with a terminal or pipes to attach later',
      })
    const output = this.#hub.attach()
    return this.#errorHub === undefined ? { output } : { output, errors: this.#errorHub.attach() }
  }

  /**
   * Starts a command in the agent's namespaces, under the same locks, in a cgroup of its own. It ends with the agent at
   * the latest.
   */
  async exec(request: ExecRequest): Promise<HeldProcess> {
    const { world, process, cgroup, terminals, layers } = this.#parts
    const { timeoutMillis } = request
    const limit = timeoutMillis === undefined ? {} : { deadline: performance.now() + timeoutMillis }
    checkCommand(request.argv, request.environment)
    checkDirectory(request.cwd, layers)
    if (process.hasEnded) throw endedError()
    if (this.#stands) throw new PuzzledError('wrong-state', 'The agent of this branch stands still')
    const own = join(cgroup, `exec-${++this.#commands}`)
    // That of the agent is closed when it is collected, and its number may be another agent's before the child looks.
    const agent = duplicate(process.pidfd)
    const undo = new UndoStack()
    try {
      const held = await startProcess(
        {
          stdio: request.stdio,
          terminals,
          owner: world.identity,
          cgroup: own,
          extent: own,
          limits: request.limits ?? {},
          command: request.argv[0] ?? '',
          execGate: this.#parts.execGate,
          onCollected: () => undefined,
          spawning: (spawning) => this.#await(spawning),
          namespaces: [],
          ...limit,
          plan: (descriptors, terminal, socket) =>
            joinPlan({
              ...world,
              agent,
              requester: world.record.requester,
              cwd: request.cwd,
              argv: request.argv,
              environment: environmentOf(world, request.environment, request.stdio.kind === 'pty'),
              terminal,
              execNotify: execNotifyOf(socket),
              descriptors,
            }),
        },
        undo,
      )
      undo.keep()
      return held
    } catch (error) {
      const failure = await undo.unwindAfter(error)
      const ofCommand = failure instanceof PuzzledError && failure.code !== 'start-failed'
      throw !ofCommand && (await this.#hasEnded()) ? endedError(failure) : failure
    } finally {
      closeSync(agent)
    }
  }

  /** Of a start that failed on the way (no such process, no memory, a kill) the agent’s end is the reason, and takes a moment. */
  async #hasEnded(): Promise<boolean> {
    const { process, cgroup } = this.#parts
    const patience = performance.now() + END_MILLIS
    while (!process.isKilled && processesOf(join(cgroup, 'agent')).length > 0) {
      if (performance.now() > patience) return false
      await delay(5)
    }
    return true
  }

  #await(spawning: Promise<unknown>): void {
    const over: Promise<unknown> = spawning.catch(() => undefined).finally(() => this.#starting.delete(over))
    this.#starting.add(over)
  }
}
