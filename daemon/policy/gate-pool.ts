import { Worker } from 'node:worker_threads'
import { workerPath } from '../lib/assets.ts'
import type { ContentScan } from './content-scan.ts'
import type { GateReply, GateRequest, GateWorkerData, LoadedPolicy, ScanItem } from './gate-messages.ts'
import { PAGE_BYTES } from './webassembly.ts'

export interface PoolLimits {
  /** Threads that are there from the beginning. */
  workers: number
  /** Threads while evaluations wait behind slow ones; all but one for the same owner. */
  most: number
  /** How long one waits before another thread is started for it. */
  growMs: number
  /** A thread holds some 40 MB: after so long without work it is ended, and started again for the next. */
  idleMs: number
  /** For one evaluation or one batch of contents; the thread is ended when it is late. */
  timeoutMs: number
  /** Maximum of a policy's WebAssembly memory. */
  memoryBytes: number
  /** Heap of a worker's JavaScript. */
  heapBytes: number
  /** Requests that may wait for a worker; more are refused at once. */
  queue: number
}

export const POOL_LIMITS: PoolLimits = {
  workers: 1,
  most: 3,
  growMs: 250,
  idleMs: 60_000,
  timeoutMs: 30_000,
  memoryBytes: 512 * 1024 * 1024,
  heapBytes: 512 * 1024 * 1024,
  queue: 256,
}

/** On a busy machine a thread takes seconds to be there; what it does is judged by its own limit. */
const STARTUP_MS = 20_000

type Answer = Exclude<GateReply, { kind: 'ready' }>

interface Job {
  /** Whoever asks for much waits behind who asks for little. */
  owner: string
  request: GateRequest
  transfer: readonly ArrayBuffer[]
  resolve: (reply: Answer) => void
  reject: (error: Error) => void
}

interface Slot {
  worker: Worker
  job: Job | null
  timer: NodeJS.Timeout | null
  state: 'starting' | 'ready' | 'ending'
}

/** What a policy answered, or why it did not. */
export type RawResult = { output: unknown } | { failure: string }

/**
 * Warm threads that hold one set of policies. A thread that is late, traps out of its heap or dies is replaced, and
 * the job it had is a failure: it is never tried again on another thread, because what killed one would kill the next.
 *
 * One owner's slow evaluations hold up that owner only: where somebody waits for longer than a moment there are more
 * threads, the last of which is for others, and a thread that is free goes to who has the fewest.
 */
export class GatePool {
  readonly #policies: readonly LoadedPolicy[]
  readonly #limits: PoolLimits
  readonly #slots = new Set<Slot>()
  readonly #waiting: Job[] = []
  #nextId = 1
  #closed = false
  /** Threads that died before they were ready, in a row: a set that cannot start is not started for ever. */
  #stillborn = 0
  #idle: NodeJS.Timeout | null = null
  #grow: NodeJS.Timeout | null = null

  private constructor(policies: readonly LoadedPolicy[], limits: PoolLimits) {
    this.#policies = policies
    this.#limits = limits
  }

  /** Resolves when every thread has instantiated every policy; otherwise nothing is left running. */
  static async start(policies: readonly LoadedPolicy[], limits: PoolLimits): Promise<GatePool> {
    const pool = new GatePool(policies, limits)
    try {
      await Promise.all(Array.from({ length: limits.workers }, () => pool.#spawn()))
    } catch (error) {
      await pool.close()
      throw error
    }
    return pool
  }

  get threads(): number {
    return this.#slots.size
  }

  /** One result per policy, in order. Rejects when no thread came to an end with it. */
  async evaluate(input: ArrayBuffer, owner = ''): Promise<readonly RawResult[]> {
    const id = this.#nextId++
    const reply = await this.#submit(owner, { kind: 'evaluate', id, input }, [input])
    if (reply.kind !== 'evaluated' || reply.id !== id || reply.results.length !== this.#policies.length)
      throw new Error('the policy worker answered something else')
    return reply.results
  }

  async scan(
    items: readonly ScanItem[],
    owner = '',
  ): Promise<readonly { change: number; scan: ContentScan }[]> {
    const id = this.#nextId++
    const reply = await this.#submit(owner, { kind: 'scan', id, items }, [])
    if (reply.kind !== 'scanned' || reply.id !== id)
      throw new Error('the policy worker answered something else')
    return reply.scans
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#rest(false)
    this.#growLater(false)
    for (const job of this.#waiting.splice(0)) job.reject(new Error('the policies were unloaded'))
    await Promise.all([...this.#slots].map(({ worker }) => worker.terminate()))
  }

  #submit(owner: string, request: GateRequest, transfer: readonly ArrayBuffer[]): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) reject(new Error('the policies were unloaded'))
      else if (this.#waiting.length >= this.#limits.queue)
        reject(new Error('too many evaluations are waiting'))
      else {
        this.#rest(false)
        this.#waiting.push({ owner, request, transfer, resolve, reject })
        this.#replenish()
        this.#dispatch()
      }
    })
  }

  #dispatch(): void {
    for (const slot of this.#slots) {
      if (slot.state !== 'ready' || slot.job !== null) continue
      const job = this.#next()
      if (job === undefined) break
      slot.job = job
      slot.worker.ref()
      slot.timer = setTimeout(() => this.#late(slot), this.#limits.timeoutMs)
      slot.worker.postMessage(job.request, [...job.transfer])
    }
    this.#growLater(this.#waiting.length > 0 && this.#slots.size < this.#limits.most)
  }

  /** Of those who have the fewest threads, who has waited longest. */
  #next(): Job | undefined {
    const held = (owner: string): number => [...this.#slots].filter(({ job }) => job?.owner === owner).length
    const share = Math.max(1, this.#limits.most - 1)
    let best: { job: Job; threads: number } | undefined
    for (const job of this.#waiting) {
      const threads = held(job.owner)
      if (threads < share && (best === undefined || threads < best.threads)) best = { job, threads }
    }
    if (best !== undefined) this.#waiting.splice(this.#waiting.indexOf(best.job), 1)
    return best?.job
  }

  /** Most evaluations take milliseconds: a thread of some 50 MB is started only for who waits longer. */
  #growLater(wanted: boolean): void {
    if (!wanted || this.#closed) {
      if (this.#grow !== null) clearTimeout(this.#grow)
      this.#grow = null
      return
    }
    this.#grow ??= setTimeout(() => {
      this.#grow = null
      if (this.#waiting.length === 0 || this.#slots.size >= this.#limits.most) return
      // What is wrong with a thread that does not start is told to who waits, as for the first one.
      this.#spawn().catch(() => undefined)
      this.#growLater(true)
    }, this.#limits.growMs)
  }

  #late(slot: Slot): void {
    this.#fail(slot, new Error(`no result within ${this.#limits.timeoutMs} ms`))
    // `terminate` stops the thread even inside an endless loop of WebAssembly; `exit` follows.
    slot.state = 'ending'
    void slot.worker.terminate()
  }

  #fail(slot: Slot, error: Error): void {
    if (slot.timer !== null) clearTimeout(slot.timer)
    const { job } = slot
    slot.timer = null
    slot.job = null
    job?.reject(error)
  }

  #answer(slot: Slot, reply: Answer): void {
    if (slot.timer !== null) clearTimeout(slot.timer)
    const { job } = slot
    slot.timer = null
    slot.job = null
    // An idle thread must not keep a short-lived program alive.
    slot.worker.unref()
    job?.resolve(reply)
    this.#dispatch()
    this.#rest([...this.#slots].every(({ job }) => job === null))
  }

  /** Counts down to the end of all threads, or stops counting. */
  #rest(idle: boolean): void {
    if (this.#idle !== null) clearTimeout(this.#idle)
    this.#idle = idle ? setTimeout(() => this.#endThreads(), this.#limits.idleMs).unref() : null
  }

  #endThreads(): void {
    for (const slot of this.#slots) {
      slot.state = 'ending'
      void slot.worker.terminate()
    }
  }

  #replenish(): void {
    for (let missing = this.#limits.workers - this.#slots.size; missing > 0; missing--)
      this.#spawn().catch((error: Error) => {
        if (this.#stillborn < 3) return
        for (const job of this.#waiting.splice(0)) job.reject(error)
      })
  }

  #spawn(): Promise<void> {
    const data: GateWorkerData = {
      policies: this.#policies,
      memoryPages: Math.floor(this.#limits.memoryBytes / PAGE_BYTES),
    }
    const worker = new Worker(workerPath('gate'), {
      workerData: data,
      // What a policy prints is not for the daemon's own output, and its environment is nobody's business.
      env: {},
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(this.#limits.heapBytes / 2 ** 20) },
    })
    // Both streams stay unread: reading them would keep the whole program alive. The worker writes nothing to them.
    const slot: Slot = { worker, job: null, timer: null, state: 'starting' }
    this.#slots.add(slot)
    return new Promise((resolve, reject) => {
      const startup = setTimeout(() => void worker.terminate(), Math.max(this.#limits.timeoutMs, STARTUP_MS))
      let cause = new Error('the policy worker ended before it was ready')
      worker.on('message', (message: GateReply) => {
        if (message.kind !== 'ready') return this.#answer(slot, message)
        clearTimeout(startup)
        slot.state = 'ready'
        this.#stillborn = 0
        worker.unref()
        resolve()
        this.#dispatch()
      })
      worker.on('error', (error: unknown) => {
        cause = error instanceof Error ? error : new Error(String(error))
        this.#fail(slot, cause)
      })
      worker.on('exit', (code) => {
        clearTimeout(startup)
        this.#slots.delete(slot)
        this.#fail(slot, new Error(`the policy worker ended with ${code}`))
        if (slot.state === 'starting') this.#stillborn++
        reject(cause)
        if (!this.#closed && this.#stillborn < 3 && this.#waiting.length > 0) this.#replenish()
      })
    })
  }
}
