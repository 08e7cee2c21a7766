import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../lib/errors.ts'
import { O_CLOEXEC, O_RDONLY } from './uapi/index.ts'

/** What a cgroup used of the processor, one system call each time: the file stays open, which keeps nobody from removing the cgroup. */
class UsageFile {
  readonly #text = Buffer.alloc(64)
  readonly #path: string
  #descriptor: number | undefined

  constructor(path: string) {
    this.#path = join(path, 'cpu.stat')
  }

  open(): void {
    this.#descriptor ??= openSync(this.#path, O_RDONLY | O_CLOEXEC)
  }

  /** In microseconds; null where the cgroup is gone. */
  read(): number | null {
    if (this.#descriptor === undefined) return null
    try {
      const length = readSync(this.#descriptor, this.#text, 0, this.#text.length, 0)
      const [, digits] = /^usage_usec (\d+)\n/.exec(this.#text.toString('latin1', 0, length)) ?? []
      return digits === undefined ? null : Number(digits)
    } catch (error) {
      if (errnoOf(error) !== 'ENODEV') throw error
      return null
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }
}

/** All who ask within this time get one answer. */
const TOGETHER_MILLIS = 5

/**
 * The cgroup that all branches are in. Where it used nothing, none of them did: a daemon with many agents that rest reads
 * one file instead of one for each of them.
 */
class CommonClock {
  static readonly #all = new Map<string, CommonClock>()
  readonly #path: string
  readonly #file: UsageFile
  #users = 0
  #micros: number | null = null
  #readAt = Number.NEGATIVE_INFINITY

  private constructor(path: string) {
    this.#path = path
    this.#file = new UsageFile(path)
  }

  static take(path: string): CommonClock {
    const clock = CommonClock.#all.get(path) ?? new CommonClock(path)
    CommonClock.#all.set(path, clock)
    clock.#users++
    return clock
  }

  /** Null where nobody knows: then each branch is asked itself. */
  read(): number | null {
    const now = performance.now()
    if (now - this.#readAt < TOGETHER_MILLIS) return this.#micros
    this.#readAt = now
    try {
      this.#file.open()
      this.#micros = this.#file.read()
    } catch {
      this.#micros = null
    }
    // The last branch took it along, and the next one made another of the same name.
    if (this.#micros === null) this.#file.close()
    return this.#micros
  }

  release(): void {
    if (--this.#users > 0) return
    this.#file.close()
    CommonClock.#all.delete(this.#path)
  }
}

/** What the processes of a cgroup used of the processor. `above` is a cgroup that it is in together with others. */
export class CpuClock {
  readonly #file: UsageFile
  readonly #common: CommonClock | null
  #open = true
  #micros = 0
  /** Of all, before the last look at this one. */
  #commonThen: number | null = null

  constructor(path: string, above?: string) {
    this.#file = new UsageFile(path)
    this.#file.open()
    this.#common = above === undefined ? null : CommonClock.take(above)
  }

  /** In microseconds; of a cgroup that is gone, what was read last. */
  read(): number {
    if (!this.#open) return this.#micros
    // Before its own: what is used between the two is seen the next time.
    const common = this.#common?.read() ?? null
    if (common === null || common !== this.#commonThen) this.#micros = this.#file.read() ?? this.#micros
    this.#commonThen = common
    return this.#micros
  }

  /** May be called again. */
  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#file.close()
    this.#common?.release()
  }
}
