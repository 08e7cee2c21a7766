/** Which of the two threads of a walk: the one that was there first, or the one that came to help. */
export type Side = 0 | 1
export const FIRST: Side = 0
export const SECOND: Side = 1
export const other = (side: Side): Side => (side === FIRST ? SECOND : FIRST)

const FREE = 0
const MAIL = 2
const OVER = 4
const THREAD = 5
const WORDS = 6

const words = (count: number): SharedArrayBuffer =>
  new SharedArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT)

/** The numbers that both threads of a walk have. */
export class WalkMemory {
  readonly shared: SharedArrayBuffer
  readonly #words: Int32Array

  constructor(shared = words(WORDS)) {
    this.shared = shared
    this.#words = new Int32Array(shared)
  }

  /** Whether a thread has nothing to do and would take a round; said by that thread alone. */
  setFree(side: Side, free: boolean): void {
    Atomics.store(this.#words, FREE + side, free ? 1 : 0)
  }

  isFree(side: Side): boolean {
    return Atomics.load(this.#words, FREE + side) === 1
  }

  /** True for the one call that gets hold of a thread that was free. */
  engage(side: Side): boolean {
    return Atomics.compareExchange(this.#words, FREE + side, 1, 0) === 1
  }

  /** How often a thread was called on: it looks at this before it looks for its mail, and waits for another number. */
  calls(side: Side): number {
    return Atomics.load(this.#words, MAIL + side)
  }

  call(side: Side): void {
    Atomics.add(this.#words, MAIL + side, 1)
    Atomics.notify(this.#words, MAIL + side)
  }

  waitCall(side: Side, seen: number, ms: number): void {
    Atomics.wait(this.#words, MAIL + side, seen, ms)
  }

  /** Nobody begins anything any more: all was looked at, or something failed. */
  end(): void {
    Atomics.store(this.#words, OVER, 1)
    this.call(FIRST)
    this.call(SECOND)
  }

  get isOver(): boolean {
    return Atomics.load(this.#words, OVER) === 1
  }

  /** The kernel's number of the second thread; 0 before it runs. */
  get thread(): number {
    return Atomics.load(this.#words, THREAD)
  }

  set thread(number: number) {
    Atomics.store(this.#words, THREAD, number)
  }
}

const NEXT = 0
const CHANGED = 1
const DONE = 2
const CLAIM_WORDS = 3

/** Which entries of a round that two threads look at are left, and what became of the half of the one that was asked. */
export class Claims {
  readonly shared: SharedArrayBuffer
  readonly #words: Int32Array

  constructor(shared = words(CLAIM_WORDS)) {
    this.shared = shared
    this.#words = new Int32Array(shared)
  }

  claim(): number {
    return Atomics.add(this.#words, NEXT, 1)
  }

  /** Said once, by the one that was asked, when it works in this round no more. */
  done(changed: boolean): void {
    Atomics.store(this.#words, CHANGED, changed ? 1 : 0)
    Atomics.store(this.#words, DONE, 1)
  }

  get isDone(): boolean {
    return Atomics.load(this.#words, DONE) === 1
  }

  get changed(): boolean {
    return Atomics.load(this.#words, CHANGED) === 1
  }
}
