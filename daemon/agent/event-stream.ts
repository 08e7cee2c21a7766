import type { PuzzledEvent } from '../contract/events.ts'

/** A follower that reads slower than this loses the oldest events and is told how many. */
const MOST_WAITING = 10_000
/** For whoever looks later. The record of what happened is the audit log; this is only the last of the stream. */
const MOST_KEPT = 1000

type Wants = (event: PuzzledEvent) => boolean

/** One stream of everything that happens, to any number of followers. A slow follower never holds up the daemon. */
export class EventStream {
  readonly #followers = new Set<(event: PuzzledEvent) => void>()

  readonly #kept: PuzzledEvent[] = []

  take(event: PuzzledEvent): void {
    this.#kept.push(event)
    if (this.#kept.length > MOST_KEPT) this.#kept.shift()
    for (const follower of this.#followers) follower(event)
  }

  /** The last events, oldest first. */
  recent(wants: Wants): readonly PuzzledEvent[] {
    return this.#kept.filter(wants)
  }

  async *follow(wants: Wants, signal: AbortSignal): AsyncGenerator<PuzzledEvent> {
    const waiting: PuzzledEvent[] = []
    let lost = 0
    let wake: (() => void) | undefined
    const receive = (event: PuzzledEvent): void => {
      if (!wants(event)) return
      if (waiting.length >= MOST_WAITING) {
        waiting.shift()
        lost++
      }
      waiting.push(event)
      wake?.()
    }
    const stop = (): void => wake?.()
    this.#followers.add(receive)
    signal.addEventListener('abort', stop)
    try {
      while (!signal.aborted) {
        const next = waiting.shift()
        if (next === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
          continue
        }
        if (lost > 0) {
          yield {
            kind: 'warning',
            branch: next.branch,
            time: next.time,
            message: `${lost} events were not delivered`,
          }
          lost = 0
        }
        yield next
      }
    } finally {
      this.#followers.delete(receive)
      signal.removeEventListener('abort', stop)
    }
  }
}
