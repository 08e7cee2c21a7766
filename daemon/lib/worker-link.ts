import type { ResourceLimits, Worker } from 'node:worker_threads'
import { ERRORS, type ErrorCode } from '../contract/errors.ts'
import { PuzzledError } from './errors.ts'
import { startWorker } from './lean-heap.ts'
import type { TellProgress } from './progress.ts'

/** An error on its way between threads, where classes are lost. */
export interface ErrorText {
  code: ErrorCode | null
  name: string
  message: string
  stack: string | null
  hint: string | null
  data: Record<string, unknown> | null
}

export type ToWorker = { call: number } & (
  | { kind: 'call'; verb: string; argument: unknown }
  | { kind: 'answer'; error: ErrorText | null }
)
export type FromWorker = { call: number } & (
  | { kind: 'ask'; what: string; argument: string }
  | { kind: 'told'; done: number; total: number | null }
  | { kind: 'result'; value: unknown }
  | { kind: 'error'; error: ErrorText }
)

export function encodeError(error: unknown): ErrorText {
  if (error instanceof PuzzledError) {
    const { code, name, message, stack = null, hint = null, data = null } = error
    return { code, name, message, stack, hint, data }
  }
  const { name, message, stack = null } = error instanceof Error ? error : new Error(String(error))
  return { code: null, name, message, stack, hint: null, data: null }
}

export function decodeError({ code, name, message, stack, hint, data }: ErrorText): Error {
  const cause = { name, stack }
  if (code === null || !(code in ERRORS)) return Object.assign(new Error(message), { cause })
  return new PuzzledError(code, message, {
    cause,
    ...(hint === null ? {} : { hint }),
    ...(data === null ? {} : { data }),
  })
}

/** Answers what a worker asks in the middle of a call; a rejection is the worker's exception. */
export type Answerer = (what: string, argument: string) => Promise<void>

/** Calls by name to code that may be on another thread. */
export interface Link {
  call(verb: string, argument: unknown, answer?: Answerer, tell?: TellProgress): Promise<unknown>
  /** Calls under way may take `patience` milliseconds to come to their end. */
  close(patience?: number): Promise<void>
}

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
  answer: Answerer
  tell: TellProgress
}

/**
 * Calls into one worker thread that is started with the first call and stays warm. It keeps the process alive only
 * while a call is under way.
 */
export class WorkerLink implements Link {
  readonly #path: string
  readonly #data: unknown
  readonly #onEnd: () => void
  readonly #resourceLimits: ResourceLimits
  readonly #pending = new Map<number, Pending>()
  #worker: Worker | undefined
  #calls = 0
  #latest: Promise<unknown> = Promise.resolve()

  /**
   * `data` is handed to every thread that is started; `onEnd` hears of every one that has ended; `youngMb` is the most
   * that new objects may take before they are looked through.
   */
  constructor(
    path: string,
    { data, onEnd, youngMb }: { data?: unknown; onEnd?: () => void; youngMb?: number } = {},
  ) {
    this.#path = path
    this.#data = data
    this.#onEnd = onEnd ?? (() => undefined)
    this.#resourceLimits = youngMb === undefined ? {} : { maxYoungGenerationSizeMb: youngMb }
  }

  call(
    verb: string,
    argument: unknown,
    answer: Answerer = refuse,
    tell: TellProgress = unheard,
  ): Promise<unknown> {
    const worker = this.#start()
    const call = ++this.#calls
    const result = new Promise((resolve, reject) => {
      this.#pending.set(call, { resolve, reject, answer, tell })
      worker.ref()
      worker.postMessage({ call, kind: 'call', verb, argument } satisfies ToWorker)
    })
    this.#latest = result
    return result
  }

  /**
   * Ends the thread. Calls that are still under way are rejected; what they did durably stays and is recovered, what they
   * had open stays open.
   */
  async close(patience = 0): Promise<void> {
    // One after the other: with the latest all are done.
    if (patience > 0) await settledWithin(this.#latest, patience)
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
    this.#fail(gone('The worker was closed during a call'))
  }

  #start(): Worker {
    if (this.#worker !== undefined) return this.#worker
    const worker = startWorker(this.#path, {
      workerData: this.#data,
      resourceLimits: this.#resourceLimits,
    })
    worker.on('message', (message: FromWorker) => this.#receive(message))
    worker.on('error', (cause) => this.#fail(gone('A worker thread failed', cause)))
    worker.on('exit', () => {
      this.#onEnd()
      if (this.#worker === worker) this.#worker = undefined
      this.#fail(gone('A worker thread ended unexpectedly'))
    })
    worker.unref()
    this.#worker = worker
    return worker
  }

  #receive(message: FromWorker): void {
    const pending = this.#pending.get(message.call)
    if (pending === undefined) return
    if (message.kind === 'told') {
      pending.tell(message.done, message.total)
      return
    }
    if (message.kind === 'ask') {
      const reply = (error: ErrorText | null): void =>
        this.#worker?.postMessage({ call: message.call, kind: 'answer', error } satisfies ToWorker)
      pending.answer(message.what, message.argument).then(
        () => reply(null),
        (error: unknown) => reply(encodeError(error)),
      )
      return
    }
    this.#pending.delete(message.call)
    if (this.#pending.size === 0) this.#worker?.unref()
    if (message.kind === 'result') pending.resolve(message.value)
    else pending.reject(decodeError(message.error))
  }

  #fail(error: Error): void {
    const waiting = [...this.#pending.values()]
    this.#pending.clear()
    for (const { reject } of waiting) reject(error)
  }
}

async function settledWithin(work: Promise<unknown>, millis: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const tired = new Promise((resolve) => {
    timer = setTimeout(resolve, millis)
  })
  await Promise.race([Promise.allSettled([work]), tired])
  clearTimeout(timer)
}

const gone = (message: string, cause?: unknown): PuzzledError =>
  new PuzzledError('internal', message, { cause, data: { worker: 'gone' } })

/** The thread ended in the middle of a call: what the call had done by then, nobody knows. */
export const isWorkerGone = (error: unknown): boolean =>
  error instanceof PuzzledError && error.data?.worker === 'gone'

const unheard: TellProgress = () => undefined

const refuse: Answerer = async (what) => {
  throw new PuzzledError('internal', `The worker asked "${what}", which nobody answers`)
}
