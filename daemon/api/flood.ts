import { PuzzledError } from '../lib/errors.ts'

const MOST_AT_ONCE = 64
const MOST_PER_SECOND = 500

interface Count {
  open: number
  second: number
  calls: number
}

/** Bounds what one connection can have in flight and start per second; others do not notice. */
export class FloodGate {
  readonly #counts = new Map<string, Count>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  async admit<Result>(caller: string, work: () => Promise<Result>): Promise<Result> {
    const count = this.#enter(caller)
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

  #enter(caller: string): Count {
    const second = Math.floor(this.#now() / 1000)
    const count = this.#counts.get(caller) ?? { open: 0, second, calls: 0 }
    if (count.second !== second) Object.assign(count, { second, calls: 0 })
    count.calls++
    this.#counts.set(caller, count)
    if (count.open >= MOST_AT_ONCE || count.calls > MOST_PER_SECOND)
      throw new PuzzledError(
        'too-large',
        `Too many calls: at most ${MOST_AT_ONCE} at once and ${MOST_PER_SECOND} a second`,
      )
    return count
  }
}
