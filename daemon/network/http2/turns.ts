import type { Duplex } from 'node:stream'

/** The loop is shared by all branches: a turn of one connection is no longer, and begins no more requests. */
export const TURN_MS = 4
export const TURN_REQUESTS = 32

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
