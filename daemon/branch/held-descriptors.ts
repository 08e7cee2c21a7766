import { errnoOf } from '../lib/errors.ts'

/** Far more than a commit keeps open. */
const SLOTS = 4096

/**
 * The descriptors that a commit thread holds, in memory that outlives the thread: they belong to the process, and a
 * thread that dies takes none of them with it, locks included. A number is taken out before it is closed, so that nobody
 * closes it twice. What finds no slot is not remembered.
 */
export class HeldDescriptors {
  readonly shared: SharedArrayBuffer
  readonly #slots: Int32Array
  /** Of the thread that holds them: where each stands, and what is free from `#next` on or was freed. */
  readonly #places = new Map<number, number>()
  readonly #free: number[] = []
  #next = 0

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT)) {
    this.shared = shared
    this.#slots = new Int32Array(shared)
  }

  hold(fd: number): void {
    const place = this.#free.pop() ?? this.#next++
    if (place >= this.#slots.length) return
    this.#places.set(fd, place)
    // 0 is an empty slot: nobody holds the standard input.
    Atomics.store(this.#slots, place, fd)
  }

  drop(fd: number): void {
    const place = this.#places.get(fd)
    if (place === undefined) return
    this.#places.delete(fd)
    Atomics.store(this.#slots, place, 0)
    this.#free.push(place)
  }

  /** What a thread that is gone left behind; forgotten here. */
  takeAll(): number[] {
    return [...this.#slots.keys()].map((at) => Atomics.exchange(this.#slots, at, 0)).filter((fd) => fd !== 0)
  }

  /**
   * Gives back what a thread that is gone left behind. A broken disk answers EIO and the number is free all the same: it
   * must not keep the locks of the others, nor end the process that hears of it.
   */
  closeAll(close: (fd: number) => void): void {
    for (const fd of this.takeAll())
      try {
        close(fd)
      } catch (error) {
        if (errnoOf(error) === undefined) throw error
      }
  }
}
