import type { Http2Answer } from './answer.ts'
import type { Http2Request } from './request.ts'
import type { InWindow, OutWindow } from './windows.ts'

/** One request and its answer, while either of them goes on. */
export interface Stream {
  readonly id: number
  readonly request: Http2Request
  readonly answer: Http2Answer
  readonly in: InWindow
  readonly out: OutWindow
  /** When the body must be here, on the clock of `performance.now()`. */
  readonly until: number
  /** The agent has said everything. */
  heard: boolean
  /** The agent was told everything. */
  said: boolean
  /** Of the body, behind the end of the answer. */
  drained: number
}

/** The last streams that this end has ended. */
export class EndedStreams {
  readonly #most: number
  readonly #ids = new Set<number>()

  constructor(most: number) {
    this.#most = most
  }

  add(id: number): void {
    this.#ids.add(id)
    if (this.#ids.size <= this.#most) return
    const [oldest] = this.#ids
    if (oldest !== undefined) this.#ids.delete(oldest)
  }

  has(id: number): boolean {
    return this.#ids.has(id)
  }
}
