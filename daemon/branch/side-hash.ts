import type { Worker } from 'node:worker_threads'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { startWorker } from '../lib/lean-heap.ts'
import type { ContentHash } from './content-hash.ts'
import { hashLane, type Lane, ZEROS_MOST } from './hash-lane.ts'

/** Hashing one piece takes milliseconds: a thread that needs longer than so many waits of a second is not there. */
const PATIENCE = 120

/**
 * SHA-256 on a thread of its own. The pieces stand in memory that both threads have; none is touched again before it is
 * hashed. All calls are synchronous: whoever copies waits only when the other thread is several pieces behind. A thread
 * that does not answer is an error, never another digest.
 */
export class SideHash implements ContentHash {
  readonly #lane: Lane
  readonly #thread: Worker
  #given = 0

  constructor(piece: number) {
    this.#lane = hashLane(piece)
    this.#thread = startWorker(workerPath('hash'), { workerData: this.#lane.shared })
    this.#thread.unref()
    // That it failed is seen by waiting for it: this thread's event loop does not run meanwhile.
    this.#thread.on('error', () => undefined)
  }

  room(): Buffer {
    this.#awaitTaken(this.#given - this.#lane.slots + 1)
    return this.#lane.slot(this.#given)
  }

  update(piece: Buffer): void {
    if (piece.length > 0) this.#give(piece.length)
  }

  zeros(count: number): void {
    for (let left = count; left > 0; left -= ZEROS_MOST) {
      this.room()
      this.#give(-Math.min(ZEROS_MOST, left))
    }
  }

  digest(): string {
    this.room()
    this.#give(0)
    this.#awaitTaken(this.#given)
    return this.#lane.digest()
  }

  close(): void {
    void this.#thread.terminate()
  }

  #give(length: number): void {
    this.#lane.give(this.#given++, length)
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
