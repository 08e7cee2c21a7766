import { workerPath } from '../lib/assets.ts'
import { WorkerProcess } from '../lib/worker-process.ts'
import type { ContentScan } from './content-scan.ts'
import {
  type EvaluateMessage,
  type LoadedPolicy,
  MAX_REPLY_BYTES,
  type ScanItem,
  type ScanMessage,
  type StartMessage,
} from './gate-messages.ts'
import { type GateReply, type Question, type RawResult, readReply } from './gate-replies.ts'
import { PAGE_BYTES } from './webassembly.ts'

export type { RawResult } from './gate-replies.ts'

export interface PoolLimits {
  /** Workers that are there from the beginning. */
  workers: number
  /** Workers while evaluations wait behind slow ones; all but one for the same owner. */
  most: number
  /** How long one waits before another worker is started for it. */
  growMs: number
  /** A worker holds some 60 MB: after so long without work it is ended, and started again for the next. */
  idleMs: number
  /** For one evaluation or one batch of contents; the worker is ended when it is late. */
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

/** On a busy machine a process takes seconds to be there; what it does is judged by its own limit. */
const STARTUP_MS = 20_000

type Answer = Exclude<GateReply, { kind: 'ready' | 'unfit' }>

interface Job {
  /** Whoever asks for much waits behind who asks for little. */
  owner: string
  question: Exclude<Question, { kind: 'start' }>
  message: EvaluateMessage | ScanMessage
  body: readonly Uint8Array[]
  resolve: (reply: Answer) => void
  reject: (error: Error) => void
}

interface Slot {
  worker: WorkerProcess
  job: Job | null
  timer: NodeJS.Timeout | null
  state: 'starting' | 'ready' | 'ending'
}

/**
 * Warm processes without rights (`gate.worker.ts`) that hold one set of policies. A worker that is late, traps out of
 * its heap, says what nobody asked it or dies is replaced, and the job it had is a failure: it is never tried again with
 * another one, because what killed one would kill the next.
 *
 * One owner's slow evaluations hold up that owner only: where somebody waits for longer than a moment there are more
 * workers, the last of which is for others, and a worker that is free goes to who has the fewest.
 */
export class GatePool {
  readonly #policies: readonly LoadedPolicy[]
  readonly #limits: PoolLimits
  readonly #slots = new Set<Slot>()
  readonly #waiting: Job[] = []
  #nextId = 1
  #closed = false
  /** Workers that died before they were ready, in a row: a set that cannot start is not started for ever. */
  #stillborn = 0
  #idle: NodeJS.Timeout | null = null
  #grow: NodeJS.Timeout | null = null
  #whenEmpty: () => void = () => undefined

  readonly #file: string

  private constructor(policies: readonly LoadedPolicy[], limits: PoolLimits, file: string) {
    this.#policies = policies
    this.#limits = limits
    this.#file = file
  }

  /** Resolves when every worker has instantiated every policy; otherwise nothing is left running. */
  static async start(
    policies: readonly LoadedPolicy[],
    limits: PoolLimits,
    file = workerPath('gate'),
  ): Promise<GatePool> {
    const pool = new GatePool(policies, limits, file)
    try {
      await Promise.all(Array.from({ length: limits.workers }, () => pool.#spawn()))
    } catch (error) {
      await pool.close()
      throw error
    }
    return pool
  }

  /** Process numbers of the workers that there are. */
  get workers(): readonly number[] {
    return [...this.#slots].flatMap(({ worker }) => worker.pid ?? [])
  }

  /** One result per policy, in order. Rejects when no worker came to an end with it. */
  async evaluate(input: ArrayBuffer, owner = ''): Promise<readonly RawResult[]> {
    const id = this.#nextId++
    const question = { kind: 'evaluate' as const, id, answers: this.#policies.length }
    const reply = await this.#submit(owner, question, { kind: 'evaluate', id }, [new Uint8Array(input)])
    return reply.kind === 'evaluated' ? reply.results : []
  }

  async scan(
    items: readonly ScanItem[],
    owner = '',
  ): Promise<readonly { change: number; scan: ContentScan }[]> {
    const id = this.#nextId++
    const message: ScanMessage = {
      ...{ kind: 'scan', id },
      items: items.map(({ complete, path, content, old }) => ({
        ...{ complete, path: path.byteLength, content: content.byteLength },
        old: old?.byteLength ?? -1,
      })),
    }
    const body = items.flatMap(({ path, content, old }) =>
      old === undefined ? [path, content] : [path, content, old],
    )
    const reply = await this.#submit(owner, { kind: 'scan', id, answers: items.length }, message, body)
    const scans = reply.kind === 'scanned' ? reply.scans : []
    return scans.flatMap((scan, at) => {
      const item = items[at]
      return item === undefined ? [] : [{ change: item.change, scan }]
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#rest(false)
    this.#growLater(false)
    for (const job of this.#waiting.splice(0)) job.reject(new Error('the policies were unloaded'))
    this.#endWorkers()
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve
      this.#checkEmpty()
    })
  }

  #checkEmpty(): void {
    if (this.#slots.size === 0) this.#whenEmpty()
  }

  #submit(
    owner: string,
    question: Job['question'],
    message: Job['message'],
    body: readonly Uint8Array[],
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) reject(new Error('the policies were unloaded'))
      else if (this.#waiting.length >= this.#limits.queue)
        reject(new Error('too many evaluations are waiting'))
      else {
        this.#rest(false)
        this.#waiting.push({ owner, question, message, body, resolve, reject })
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
      slot.worker.send(job.message, job.body)
    }
    this.#growLater(this.#waiting.length > 0 && this.#slots.size < this.#limits.most)
  }

  /** Of those who have the fewest workers, who has waited longest. */
  #next(): Job | undefined {
    const held = (owner: string): number => [...this.#slots].filter(({ job }) => job?.owner === owner).length
    const share = Math.max(1, this.#limits.most - 1)
    let best: { job: Job; workers: number } | undefined
    for (const job of this.#waiting) {
      const workers = held(job.owner)
      if (workers < share && (best === undefined || workers < best.workers)) best = { job, workers }
    }
    if (best !== undefined) this.#waiting.splice(this.#waiting.indexOf(best.job), 1)
    return best?.job
  }

  /** Most evaluations take milliseconds: a worker of some 60 MB is started only for who waits longer. */
  #growLater(wanted: boolean): void {
    if (!wanted || this.#closed) {
      if (this.#grow !== null) clearTimeout(this.#grow)
      this.#grow = null
      return
    }
    this.#grow ??= setTimeout(() => {
      this.#grow = null
      if (this.#waiting.length === 0 || this.#slots.size >= this.#limits.most) return
      // What is wrong with a worker that does not start is told to who waits, as for the first one.
      this.#spawn().catch(() => undefined)
      this.#growLater(true)
    }, this.#limits.growMs)
  }

  #late(slot: Slot): void {
    this.#fail(slot, new Error(`no result within ${this.#limits.timeoutMs} ms`))
    slot.state = 'ending'
    slot.worker.kill()
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
    // An idle worker must not keep a short-lived program alive.
    slot.worker.unref()
    job?.resolve(reply)
    this.#dispatch()
    this.#rest([...this.#slots].every(({ job }) => job === null))
  }

  /** Counts down to the end of all workers, or stops counting. */
  #rest(idle: boolean): void {
    if (this.#idle !== null) clearTimeout(this.#idle)
    this.#idle = idle ? setTimeout(() => this.#endWorkers(), this.#limits.idleMs).unref() : null
  }

  #endWorkers(): void {
    for (const slot of this.#slots) {
      slot.state = 'ending'
      slot.worker.kill()
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
    return new Promise((resolve, reject) => {
      let cause: Error | undefined
      const slot: Slot = { worker: this.#start(hear, ended), job: null, timer: null, state: 'starting' }
      const pool = this
      this.#slots.add(slot)
      const startup = setTimeout(() => slot.worker.kill(), Math.max(this.#limits.timeoutMs, STARTUP_MS))
      slot.worker.send(...startMessage(this.#policies, this.#limits))

      function hear(text: string): void {
        const reply = readReply(
          text,
          slot.state === 'starting' ? { kind: 'start' } : (slot.job?.question ?? null),
        )
        if (reply.kind === 'unfit') cause = new Error(reply.reason)
        else if (reply.kind !== 'ready') pool.#answer(slot, reply)
        else {
          clearTimeout(startup)
          slot.state = 'ready'
          pool.#stillborn = 0
          slot.worker.unref()
          resolve()
          pool.#dispatch()
        }
      }

      function ended(reason: string): void {
        clearTimeout(startup)
        const error = cause ?? new Error(`the policy worker: ${reason}`)
        if (slot.state === 'starting') pool.#stillborn++
        reject(error)
        pool.#remove(slot, error)
      }
    })
  }

  #start(message: (text: string) => void, ended: (reason: string) => void): WorkerProcess {
    return new WorkerProcess({
      ...{ file: this.#file, heapBytes: this.#limits.heapBytes, messageBytes: MAX_REPLY_BYTES },
      ...{ message, ended },
    })
  }

  #remove(slot: Slot, error: Error): void {
    this.#slots.delete(slot)
    this.#fail(slot, error)
    if (!this.#closed && this.#stillborn < 3 && this.#waiting.length > 0) this.#replenish()
    this.#checkEmpty()
  }
}

function startMessage(policies: readonly LoadedPolicy[], limits: PoolLimits): [StartMessage, Uint8Array[]] {
  const message: StartMessage = {
    kind: 'start',
    memoryPages: Math.floor(limits.memoryBytes / PAGE_BYTES),
    policies: policies.map(({ name, file, entrypoint = null, bytes }) => ({
      ...{ name, file, entrypoint },
      bytes: bytes.byteLength,
    })),
  }
  return [message, policies.map(({ bytes }) => bytes)]
}
