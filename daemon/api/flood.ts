import { PuzzledError } from '../lib/errors.ts'

const MOST_AT_ONCE = 64
const MOST_PER_SECOND = 500
/** Reading what is in a message takes time, and nobody else is served meanwhile. */
const MOST_BYTES = 4 << 20
const MOST_BYTES_PER_SECOND = 16 << 20

interface Count {
  open: number
  second: number
  calls: number
  bytes: number
}

/** Bounds what one connection can have in flight, start and send per second; others do not notice. */
export class FloodGate {
  readonly #counts = new Map<string, Count>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  async admit<Result>(caller: string, bytes: number, work: () => Promise<Result>): Promise<Result> {
    const count = this.#enter(caller, bytes)
    count.open++
    try {
      return await work()
    } finally {
      count.open--
    }
  }

  /** A connection that is gone is forgotten. */
  forget(caller: string): void {
    this.#counts.delete(caller)
  }

  get size(): number {
    return this.#counts.size
  }

  #enter(caller: string, bytes: number): Count {
    const second = Math.floor(this.#now() / 1000)
    const count = this.#counts.get(caller) ?? { open: 0, second, calls: 0, bytes: 0 }
    if (count.second !== second) Object.assign(count, { second, calls: 0, bytes: 0 })
    count.calls++
    this.#counts.set(caller, count)
    if (bytes > MOST_BYTES)
      throw new PuzzledError(
        'too-large',
        `The arguments have ${bytes} bytes, at most ${MOST_BYTES} are allowed`,
      )
    count.bytes += bytes
    if (count.open >= MOST_AT_ONCE || count.calls > MOST_PER_SECOND || count.bytes > MOST_BYTES_PER_SECOND)
      throw new PuzzledError(
        'too-large',
        `Too many calls: at most ${MOST_AT_ONCE} at once, and ${MOST_PER_SECOND} or ${MOST_BYTES_PER_SECOND} bytes a second`,
      )
    return count
  }
}
