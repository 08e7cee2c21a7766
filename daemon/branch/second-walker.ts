import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { MessageChannel, type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads'
import { hasThread } from '../kernel/thread.ts'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { startWorker } from '../lib/lean-heap.ts'
import { DiffCounts } from './diff-counts.ts'
import type { DiffSink } from './diff-sink.ts'
import { FIRST, SECOND, WalkMemory } from './walk-memory.ts'
import { Partner, type WalkMail } from './walk-partner.ts'
import type { Company } from './walk-round.ts'

/** What the second thread is started with. */
export interface SecondData {
  memory: SharedArrayBuffer
  counts: SharedArrayBuffer
  port: MessagePort
}

/** Beside what its start takes from the first thread, it gains nothing below this (docs/decisions/diff.md). */
const WORTH_STARTING = 12_000

/** Beside other work a second thread only takes longer. The fourth field counts what runs now, whoever asks included. */
export function hasIdleProcessor(loadavg: string, processors: number): boolean {
  const [, running] = / (\d+)\/\d+ /.exec(loadavg) ?? []
  return running !== undefined && Number(running) < processors
}

export const receiveMail = (port: MessagePort): WalkMail | undefined =>
  (receiveMessageOnPort(port) as { message: WalkMail } | undefined)?.message

/**
 * The second thread of a walk, which is started when the walk turns out to be long. Descriptors belong to the process, so
 * it works in the directories that the first one has open. Where it cannot start, the first walks alone; where it
 * ends in the middle, the diff fails.
 */
export class SecondWalker {
  readonly #memory = new WalkMemory()
  readonly #worthStarting: number
  /** Of both threads. */
  readonly counts = new DiffCounts()
  #partner: Partner | undefined
  #port: MessagePort | undefined
  #worker: Worker | undefined
  #isStarted = false

  /** `worthStarting`: how many names must be in sight. */
  constructor({ worthStarting = WORTH_STARTING }: { worthStarting?: number } = {}) {
    this.#worthStarting = worthStarting
  }

  /** The company of the walk that has this sink. */
  beside(sink: DiffSink): Company {
    this.#partner = new Partner({
      side: FIRST,
      memory: this.#memory,
      receiver: sink,
      post: (mail) => this.#port?.postMessage(mail),
      receive: () => (this.#port === undefined ? undefined : receiveMail(this.#port)),
      handIn: () => undefined,
      take: (found) => sink.adopt(found),
      waiting: () => {
        if (!hasThread(this.#memory.thread))
          throw new PuzzledError('internal', 'The second thread of the diff ended early')
        sink.tellProgress()
      },
    })
    return this.#partner
  }

  /** Starts the thread where it will pay. */
  consider(looked: number): void {
    if (this.#isStarted || (this.#partner?.outlook(looked) ?? 0) < this.#worthStarting) return
    if (hasIdleProcessor(readFileSync('/proc/loadavg', 'latin1'), availableParallelism())) this.start()
  }

  start(): void {
    this.#isStarted = true
    const { port1, port2 } = new MessageChannel()
    const data: SecondData = { memory: this.#memory.shared, counts: this.counts.shared, port: port2 }
    try {
      this.#worker = startWorker(workerPath('second-walk'), {
        workerData: data,
        transferList: [port2],
        resourceLimits: { maxYoungGenerationSizeMb: 8 },
      })
    } catch {
      // No more threads for this process: it goes on with those that it has.
      port1.close()
      return
    }
    this.#port = port1
    this.#worker.unref()
    // That it failed is seen by waiting for it: this thread's event loop does not run meanwhile.
    this.#worker.on('error', () => undefined)
  }

  /** Whether the thread runs and waits for its first round. */
  get isReady(): boolean {
    return this.#memory.isFree(SECOND)
  }

  /** The kernel's number of the thread; 0 before it runs. */
  get thread(): number {
    return this.#memory.thread
  }

  /** A walk that was stopped has thrown; nobody takes a part of it for the whole. */
  requireWhole(): void {
    if (this.#memory.isOver) throw new PuzzledError('internal', 'The diff was stopped in the middle')
  }

  async end(): Promise<void> {
    this.#memory.end()
    await this.#worker?.terminate()
    this.#port?.close()
  }
}
