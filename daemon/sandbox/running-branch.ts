import { join } from 'node:path'
import type { AgentExit, Grant } from '../contract/branch.ts'
import { type BudgetKind, SMALLEST_MEMORY } from '../contract/profile.ts'
import { CpuClock, cgroupUsage, type Pressure, pressureOf, privateMemoryOf } from '../kernel/cgroup.ts'
import { type CgroupLimits, limitCgroup } from '../kernel/cgroup-limits.ts'
import { PuzzledError } from '../lib/errors.ts'
import { UndoStack } from '../lib/undo.ts'
import type { ExecGate } from './exec-gate.ts'
import type { OutputObserver } from './handed-through.ts'
import type { HeldProcess, KillResult } from './held-process.ts'
import { extendedLimits } from './kernel-limits.ts'
import { OutputHub } from './output-hub.ts'
import type { OverlayLayers } from './places.ts'
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
  /** Of this command alone; those of the branch hold as well. */
  readonly limits?: CgroupLimits
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

/** A start that the kernel ends for want of memory looks like a program that crashed. */
function refuseLowMemory({ memoryBytes }: CgroupLimits = {}): void {
  if (memoryBytes !== undefined && memoryBytes < SMALLEST_MEMORY)
    throw new PuzzledError(
      'usage',
      `A memory limit of ${memoryBytes} bytes is less than a command needs to start`,
      {
        hint: `Give it at least ${SMALLEST_MEMORY / 1024 ** 2} MiB.`,
      },
    )
}

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
  readonly #clock: CpuClock
  #ended = false
  #last: { readonly micros: number; readonly used: Used } | undefined

  constructor(parts: RunningParts) {
    const { process, observe } = parts
    const hub = (source: NodeJS.ReadableStream | undefined, stream: 'stdout' | 'stderr') =>
      source === undefined ? undefined : new OutputHub(source, (chunk) => observe(stream, chunk))
    this.#parts = parts
    this.pid = process.pid
    this.grants = parts.grants
    this.cgroup = parts.cgroup
    this.#clock = new CpuClock(parts.cgroup)
    this.#hub = hub(process.output, 'stdout')
    this.#errorHub = hub(process.errors, 'stderr')
    if (process.input !== undefined) this.input = process.input
    if (this.#hub !== undefined) this.output = this.#hub.first
    if (this.#errorHub !== undefined) this.errors = this.#errorHub.first
    if (process.resize !== undefined) this.resize = process.resize
    this.exited = process.exited.finally(() => {
      this.#ended = true
      this.#clock.close()
    })
  }

  signal(name: string): Promise<KillResult> {
    return this.#parts.process.signal(name)
  }

  kill(reason: AgentExit['cause']): Promise<KillResult> {
    return this.#parts.process.kill(reason)
  }

  freeze(): Promise<void> {
    return this.#parts.process.freeze()
  }

  thaw(): Promise<void> {
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
    if (this.#ended) return this.#last?.used ?? { cpu: micros / 1e6, memory: 0, pids: 0 }
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
  pressure(resource: 'cpu' | 'memory' | 'io'): Pressure | null {
    return pressureOf(this.cgroup, resource)
  }

  /** A budget was extended: what the kernel or the exec gate holds is moved with it; held programs go on. */
  extend(kind: BudgetKind, limit: number): void {
    if (kind === 'exec') this.#parts.execGate?.setLimit(limit)
    if (!this.#ended) limitCgroup(this.cgroup, extendedLimits(this.#parts.world.profile, kind, limit))
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
    refuseLowMemory(request.limits)
    checkDirectory(request.cwd, layers)
    if (this.#ended) throw new PuzzledError('wrong-state', 'The agent of this branch has ended')
    const own = join(cgroup, `exec-${++this.#commands}`)
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
          ...limit,
          plan: (descriptors, terminal, socket) =>
            joinPlan({
              ...world,
              agent: process.pidfd,
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
      throw await undo.unwindAfter(error)
    }
  }
}
