import type { Duplex, Readable } from 'node:stream'
import type { Headers } from './request-nature.ts'

/** What a caller does with an answer. Behind `end`, `failed` and `upgraded` nothing more is said. */
export interface AnswerHandler {
  /** Before anything else: the hold on what was begun. */
  begun?(exchange: Exchange): void
  /** A connected socket is in hand, and the next thing is the first byte. A second time where it is sent again. */
  leaving?(): void
  /** Never an interim answer. */
  head(status: number, headers: Headers): void
  data(bytes: Buffer): void
  /** Everything that has arrived was handed over, and it was not all. */
  arrived?(): void
  end(trailers: Headers): void
  failed(error: Error): void
  upgraded?(headers: Headers, socket: Duplex): void
}

/** The caller's hold on a request under way. */
export interface Exchange {
  /** The handler is told `failed`, unless it has heard the end. */
  abort(error: Error): void
  pause(): void
  resume(): void
}

export interface OutgoingCall {
  /** Request line and headers, in latin1. */
  readonly head: string
  readonly method: string
  readonly upgrade: boolean
  /** A stream stays the caller's: whatever happens, it is not destroyed here. */
  readonly body: Readable | Buffer | null
  /** Of the body; undefined: it goes in chunks. */
  readonly length: number | undefined
  /** Told about every piece of a streamed body before it leaves; may throw, which ends the request. */
  readonly sending: ((bytes: number) => void) | undefined
  readonly handler: AnswerHandler
}

/** One request from the moment it is asked for: waiting for a connection, in one, or over. */
export class Call implements Exchange {
  readonly out: OutgoingCall
  /** Sent a second time, so only on a connection that nobody used before. */
  again = false
  #over = false
  #connection: { cut(): void; pause(): void; resume(): void } | undefined

  constructor(out: OutgoingCall) {
    this.out = out
    out.handler.begun?.(this)
  }

  get over(): boolean {
    return this.#over
  }

  /** Nothing can have been done twice: it is safe, whole, and no byte of an answer came. */
  get repeatable(): boolean {
    const { method, body, upgrade } = this.out
    return !this.again && !upgrade && body === null && /^(GET|HEAD|OPTIONS)$/.test(method)
  }

  runs(on: { cut(): void; pause(): void; resume(): void } | undefined): void {
    this.#connection = on
  }

  /** The handler knows how it ended. */
  finish(): void {
    this.#over = true
    this.#connection = undefined
  }

  abort(error: Error): void {
    if (this.#over) return
    const connection = this.#connection
    this.finish()
    connection?.cut()
    this.out.handler.failed(error)
  }

  pause(): void {
    this.#connection?.pause()
  }

  resume(): void {
    this.#connection?.resume()
  }
}
