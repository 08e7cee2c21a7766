const LOOKED = 0
const KEPT = 1

/** How many paths a diff has looked at, and how many it keeps of the base that it is at; of all threads that walk for it. */
export class DiffCounts {
  readonly shared: SharedArrayBuffer
  readonly #counts: Int32Array

  constructor(shared = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.shared = shared
    this.#counts = new Int32Array(shared)
  }

  get looked(): number {
    return Atomics.load(this.#counts, LOOKED)
  }

  /** Counts one more, and says how many they are. */
  look(): number {
    return Atomics.add(this.#counts, LOOKED, 1) + 1
  }

  /** Counts one more, and says how many there were before. */
  keep(): number {
    return Atomics.add(this.#counts, KEPT, 1)
  }

  endBase(): void {
    Atomics.store(this.#counts, KEPT, 0)
  }
}
