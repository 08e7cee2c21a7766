import { closeSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentExit } from '../contract/branch.ts'
import {
  cgroupAccount,
  freezeCgroup,
  isFrozen,
  killCgroup,
  oomKillsOf,
  peakMemoryOf,
  processesOf,
  removeCgroup,
  thawCgroup,
} from '../kernel/cgroup.ts'
import { pidfdSendSignal } from '../kernel/pidfd.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { collect } from './collect.ts'
import type { AgentEnd, InitStatus } from './init-status.ts'
import { signalAct } from './signals.ts'
import type { StdioStreams } from './stdio.ts'

export interface StartedProcess {
  readonly pid: number
  readonly pidfd: number
  /** The cgroup of this process and its children; removed when all are gone. */
  readonly cgroup: string
  /** The one that it was born in: that one, or one beneath it. */
  readonly own: string
  readonly status: InitStatus
  readonly startedAt: Date
  readonly streams: StdioStreams
  /** Called once when the process is collected. */
  readonly onCollected: () => void
}

/** A caller reads at leisure: beyond this the copy goes on, but the end of the agent is told. */
const DRAIN_MILLIS = 5_000

async function atMost(milliseconds: number, work: Promise<void>): Promise<void> {
  const timer = new AbortController()
  const late = delay(milliseconds, undefined, { signal: timer.signal }).catch(() => undefined)
  await Promise.race([work, late])
  timer.abort()
}

/** For whoever asks for something that only a living agent can do. */
export const endedError = (cause?: unknown): PuzzledError =>
  new PuzzledError('wrong-state', 'The agent of this branch has ended', cause === undefined ? {} : { cause })

export interface KillResult {
  readonly terminated: number
  readonly survivors: number
}

/**
 * A process that init holds: an agent, or a command that joined it. `exited` settles once, when init is collected and
 * nothing of its cgroup is left; it never rejects.
 */
export class HeldProcess {
  readonly pid: number
  readonly cgroup: string
  /** What init said first; see `InitStatus`. */
  readonly started: InitStatus['started']
  readonly exited: Promise<AgentExit>
  readonly input?: NodeJS.WritableStream
  readonly output?: NodeJS.ReadableStream
  readonly errors?: NodeJS.ReadableStream
  readonly resize?: (columns: number, rows: number) => void
  readonly #pidfd: number
  readonly #startedAt: Date
  readonly #onCollected: () => void
  readonly #own: string
  readonly #restarts: InitStatus['restarts']
  /** Why the daemon ended it, when it did. */
  #reason: AgentExit['cause'] | undefined
  /** What was seen of its memory before it was killed. */
  #peakBytes = 0
  #collected = false

  constructor(started: StartedProcess) {
    this.pid = started.pid
    this.cgroup = started.cgroup
    this.#pidfd = started.pidfd
    this.#startedAt = started.startedAt
    this.#onCollected = started.onCollected
    this.started = started.status.started
    this.#own = started.own
    this.#restarts = started.status.restarts
    const { copied, ...streams } = started.streams
    Object.assign(this, streams)
    // A start that fails must not have used up its caller's input.
    void this.started.then((first) => {
      if (first !== 'gone' && !('errnoName' in first)) copied?.begin()
    })
    this.exited = started.status.ended
      .then((end) => this.#collect(end))
      .then(async (exit) => {
        if (copied === undefined) return exit
        copied.end()
        await atMost(DRAIN_MILLIS, copied.drained)
        return copied.lost.length === 0 ? exit : { ...exit, lost: [...copied.lost] }
      })
  }

  get pidfd(): number {
    return this.#pidfd
  }

  /** It is collected and its cgroup is gone, though its output may still be read; the pidfd is closed. */
  get hasEnded(): boolean {
    return this.#collected
  }

  /** The daemon ends it, or did. */
  get isKilled(): boolean {
    return this.#reason !== undefined
  }

  /** Whether all of it stands still already; what waits inside the kernel does as soon as it wakes. */
  freeze(milliseconds?: number): Promise<boolean> {
    return this.#whileItLives(() => freezeCgroup(this.cgroup, milliseconds))
  }

  async thaw(): Promise<void> {
    await this.#whileItLives(() => thawCgroup(this.cgroup))
  }

  async #whileItLives<Result>(act: () => Promise<Result>): Promise<Result> {
    if (this.#collected) throw endedError()
    try {
      return await act()
    } catch (error) {
      const errno = errnoOf(error)
      throw errno === 'ENOENT' || errno === 'ENODEV' ? endedError(error) : error
    }
  }

  /** STOP and CONT freeze and thaw, KILL ends everything; the rest goes to init, which hands it on. */
  async signal(name: string): Promise<KillResult> {
    const act = signalAct(name)
    if (act.kind === 'freeze') await this.freeze()
    else if (act.kind === 'thaw') await this.thaw()
    else if (act.kind === 'kill') return await this.kill('signal')
    else return await this.#deliver(act.number, act.graceMillis)
    return { terminated: 0, survivors: processesOf(this.cgroup).length }
  }

  /** Everything at once, frozen or not. What the kernel could not end in time is in the answer. */
  async kill(reason: AgentExit['cause']): Promise<KillResult> {
    this.#reason ??= reason
    if (!this.#collected) this.#peakBytes = Math.max(this.#peakBytes, peakMemoryOf(this.cgroup))
    const result = await killCgroup(this.cgroup)
    if (result.survivors === 0) await this.exited
    return result
  }

  /** Kills everything when it has not ended by then; the exit says `timeout`. */
  endAfter(milliseconds: number): void {
    const timer = new AbortController()
    void this.exited.then(() => timer.abort())
    delay(Math.max(0, milliseconds), undefined, { signal: timer.signal, ref: false }).then(
      () => this.kill('timeout'),
      () => undefined,
    )
  }

  /** For an agent that nobody will ever be handed: ends it and closes the daemon's ends. */
  async abandon(): Promise<void> {
    await this.kill('signal')
    for (const stream of [this.input, this.output, this.errors])
      if (stream !== undefined && 'destroy' in stream) (stream as Duplex).destroy()
  }

  async #deliver(number: number, graceMillis: number | null): Promise<KillResult> {
    const before = processesOf(this.cgroup).length
    if (!this.#collected) pidfdSendSignal(this.#pidfd, number)
    if (graceMillis === null) return { terminated: 0, survivors: processesOf(this.cgroup).length }
    // What stands still cannot use the time to end by itself, and nobody has said that it may go on.
    if (isFrozen(this.cgroup)) return await this.kill('signal')
    const timer = new AbortController()
    const ended = await Promise.race([
      this.exited.then(() => true),
      delay(graceMillis, false, { signal: timer.signal, ref: false }).catch(() => false),
    ])
    timer.abort()
    if (ended) return { terminated: before, survivors: 0 }
    return await this.kill('signal')
  }

  async #collect(end: AgentEnd | null): Promise<AgentExit> {
    const process = await collect(this.#pidfd)
    // An agent's init was PID 1 of its namespace: the kernel has ended the rest. After a joined command something may be left.
    await killCgroup(this.cgroup)
    const usage = cgroupAccount(this.cgroup)
    const oomKills = oomKillsOf(this.#own)
    removeCgroup(this.cgroup)
    this.#collected = true
    // Nobody is left to read it. What the agent wrote stays readable to its end.
    this.input?.end()
    closeSync(this.#pidfd)
    this.#onCollected()
    const signal = end === null ? (process.signal ?? null) : end.signal
    const code = end === null ? (process.exitCode ?? null) : end.code
    const restarts = this.#restarts()
    return {
      code: signal === null ? code : null,
      signal,
      cause: oomKills > 0 ? 'oom' : (this.#reason ?? (signal === null ? 'exited' : 'signal')),
      ...(end?.why === undefined ? {} : { why: end.why }),
      ...(restarts === 0 ? {} : { restarts }),
      startedAt: this.#startedAt.toISOString(),
      endedAt: new Date().toISOString(),
      cpuUserMs: Math.round((usage.cpuUserMicros || process.userMicros) / 1000),
      cpuSystemMs: Math.round((usage.cpuSystemMicros || process.systemMicros) / 1000),
      // Not what the kernel says of init itself: that has in it what the daemon held when init was cloned out of it.
      maxRssBytes: Math.max(usage.memoryPeakBytes ?? 0, end?.maxRssBytes ?? 0, this.#peakBytes),
    }
  }
}
