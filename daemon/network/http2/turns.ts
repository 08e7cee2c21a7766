import type { Duplex } from 'node:stream'

/** The loop is shared by all branches: a turn of one of them is no longer, and that of a connection begins no more requests. */
const TURN_MS = 4
export const TURN_REQUESTS = 32

/** The time that all connections of a branch have together in one turn of the loop. Whoever comes too late reads one frame. */
export class TurnClock {
  #begun = false
  #until = 0

  /** When what begins now has to end, on the clock of `performance.now()`. */
  until(): number {
    if (!this.#begun) {
      this.#begun = true
      this.#until = performance.now() + TURN_MS
      setImmediate(() => {
        this.#begun = false
      })
    }
    return this.#until
  }
}

/**
 * Hands over what arrives on a socket, and what was left of it by its reader in the next turn of the loop: the agents of
 * other branches come between. Until then nothing more is read.
 */
export class Turns {
  readonly #socket: Duplex
  /** Says what is left. */
  readonly #read: (bytes: Buffer) => Buffer
  #paused = false
  #over = false

  constructor(socket: Duplex, read: (bytes: Buffer) => Buffer) {
    this.#socket = socket
    this.#read = read
    socket.on('data', this.#take)
  }

  readonly #take = (bytes: Buffer): void => {
    if (this.#over) return
    const rest = this.#read(bytes)
    if (this.#over) return
    if (rest.length > 0) {
      this.#paused = true
      this.#socket.pause()
      setImmediate(this.#take, rest)
    } else if (this.#paused) {
      this.#paused = false
      this.#socket.resume()
    }
  }

  /** What still comes is let go unread. */
  end(): void {
    this.#over = true
    this.#socket.off('data', this.#take)
  }
}
