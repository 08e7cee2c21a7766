import type { Worker } from 'node:worker_threads'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { startWorker } from '../lib/lean-heap.ts'
import { type ContentHash, PIECE } from './content-hash.ts'
import { hashLane, type Lane, ZEROS_MOST } from './hash-lane.ts'

/** Hashing one piece takes milliseconds: a thread that needs longer than so many waits of a second is not there. */
const PATIENCE = 120

/**
 * A thread that is done with one content and waits for the next. What ends a thread is only given back when the event loop
 * runs, and a commit copies all of its files before that: with a thread for each of them it would hold all their pieces.
 */
let spare: HashThread | undefined

/**
 * SHA-256 on a thread of its own. The pieces stand in memory that both threads have; none is touched again before it is
 * hashed. All calls are synchronous: whoever copies waits only when the other thread is several pieces behind. A thread
 * that does not answer is an error, never another digest.
 */
export class SideHash implements ContentHash {
  readonly #thread: HashThread
  #isOver = false

  constructor() {
    this.#thread = spare ?? new HashThread()
    spare = undefined
  }

  room(): Buffer {
    return this.#thread.room()
  }

  update(piece: Buffer): void {
    if (piece.length > 0) this.#thread.give(piece.length)
  }

  zeros(count: number): void {
    for (let left = count; left > 0; left -= ZEROS_MOST) {
      this.#thread.room()
      this.#thread.give(-Math.min(ZEROS_MOST, left))
    }
  }

  digest(): string {
    const digest = this.#thread.digest()
    this.#isOver = true
    return digest
  }

  close(): void {
    // One that was left in the middle has seen bytes that belong to no other content.
    if (!this.#isOver || spare !== undefined) this.#thread.end()
    else {
      spare = this.#thread
      setImmediate(endSpare)
    }
  }
}

function endSpare(): void {
  spare?.end()
  spare = undefined
}

class HashThread {
  readonly #lane: Lane = hashLane(PIECE)
  readonly #worker: Worker
  #given = 0

  constructor() {
    this.#worker = startWorker(workerPath('hash'), { workerData: this.#lane.shared })
    this.#worker.unref()
    // That it failed is seen by waiting for it: this thread's event loop does not run meanwhile.
    this.#worker.on('error', () => undefined)
  }

  room(): Buffer {
    this.#awaitTaken(this.#given - this.#lane.slots + 1)
    return this.#lane.slot(this.#given)
  }

  give(length: number): void {
    this.#lane.give(this.#given++, length)
  }

  digest(): string {
    this.room()
    this.give(0)
    this.#awaitTaken(this.#given)
    return this.#lane.digest()
  }

  end(): void {
    void this.#worker.terminate()
  }

  #awaitTaken(count: number): void {
    // Waits are counted, not time: it passes also while the machine sleeps or the process is stopped.
    for (let waits = 0; !this.#lane.waitTaken(count, 1000); waits++)
      if (waits >= PATIENCE)
        throw new PuzzledError('internal', 'The thread that hashes does not answer', {
          hint: 'Nothing was changed. Try again; see the log of the daemon.',
        })
  }
}
