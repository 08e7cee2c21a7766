/** Few pieces on their way: enough that neither thread waits for the other at each of them. */
const SLOTS = 3
const DIGEST_BYTES = 32
/** Of a hole at once: as soon hashed as somebody waits for it. */
export const ZEROS_MOST = 1 << 28

const GIVEN = 0
const TAKEN = 1
const LENGTHS = 2

export interface SharedLane {
  control: SharedArrayBuffer
  pieces: SharedArrayBuffer
  digest: SharedArrayBuffer
}

/**
 * The memory between the thread that has content and the one that hashes it: a ring of pieces, how many were given, and
 * how many of those were hashed. A piece's length is negative for a hole and 0 for the end, whose answer is the digest.
 */
export class Lane {
  readonly shared: SharedLane
  readonly slots = SLOTS
  readonly #control: Int32Array
  readonly #piece: number

  constructor(shared: SharedLane) {
    this.shared = shared
    this.#control = new Int32Array(shared.control)
    this.#piece = shared.pieces.byteLength / SLOTS
  }

  slot(number: number): Buffer {
    return Buffer.from(this.shared.pieces, (number % SLOTS) * this.#piece, this.#piece)
  }

  give(number: number, length: number): void {
    Atomics.store(this.#control, LENGTHS + (number % SLOTS), length)
    Atomics.store(this.#control, GIVEN, number + 1)
    Atomics.notify(this.#control, GIVEN)
  }

  /** Whether so many were hashed, at the latest after `ms`. */
  waitTaken(count: number, ms: number): boolean {
    const taken = Atomics.load(this.#control, TAKEN)
    if (taken >= count) return true
    Atomics.wait(this.#control, TAKEN, taken, ms)
    return Atomics.load(this.#control, TAKEN) >= count
  }

  /** The length of a piece, once it was given. */
  awaitGiven(number: number): number {
    for (let given = Atomics.load(this.#control, GIVEN); given <= number; ) {
      Atomics.wait(this.#control, GIVEN, given)
      given = Atomics.load(this.#control, GIVEN)
    }
    return Atomics.load(this.#control, LENGTHS + (number % SLOTS))
  }

  take(number: number): void {
    Atomics.store(this.#control, TAKEN, number + 1)
    Atomics.notify(this.#control, TAKEN)
  }

  end(digest: Uint8Array): void {
    new Uint8Array(this.shared.digest).set(digest)
  }

  digest(): string {
    return Buffer.from(this.shared.digest).toString('hex')
  }
}

export const hashLane = (piece: number): Lane =>
  new Lane({
    control: new SharedArrayBuffer((LENGTHS + SLOTS) * Int32Array.BYTES_PER_ELEMENT),
    pieces: new SharedArrayBuffer(piece * SLOTS),
    digest: new SharedArrayBuffer(DIGEST_BYTES),
  })
