import type { AgentResponse } from '../agent-request.ts'
import { isHeader } from '../answer-parser.ts'
import { httpDate } from '../http-date.ts'
import type { Headers } from '../request-nature.ts'

/** What the connection does for an answer in it. */
export interface AnswerOwner {
  /** No more is wanted: the agent does not read what it has. */
  readonly full: boolean
  /** Written at once. `last`: it is all that is said. */
  headers(fields: Headers, last: boolean): void
  /** Something waits to be sent, with `take`. */
  waiting(): void
  /** Nobody will hear the rest. */
  cut(): void
}

export interface Piece {
  readonly bytes: Buffer
  readonly last: boolean
}

const NOTHING = Buffer.alloc(0)

/** One answer over HTTP/2. It waits here until the agent has room for it. */
export class Http2Answer implements AgentResponse {
  readonly #owner: AnswerOwner
  readonly #headOnly: boolean
  readonly #expects: boolean
  #head: Headers | undefined
  #empty = false
  #begun = false
  #ended = false
  /** Everything was handed over to be sent. */
  #whole = false
  #sent = false
  #gone = false
  /** Of the body, where it was said how long it is. */
  #left: number | undefined
  #trailers: Headers = []
  readonly #pieces: Buffer[] = []
  #queued = 0
  #onGone: (() => void) | undefined
  #onDrain: (() => void) | undefined

  constructor(owner: AnswerOwner, asked: { readonly method: string; readonly expectsContinue: boolean }) {
    this.#owner = owner
    this.#headOnly = asked.method === 'HEAD'
    this.#expects = asked.expectsContinue
  }

  get begun(): boolean {
    return this.#begun
  }

  get gone(): boolean {
    return this.#gone
  }

  onGone(listener: () => void): void {
    this.#onGone = listener
  }

  /** The stream is no more. */
  leave(): void {
    this.#pieces.length = 0
    this.#queued = 0
    if (this.#gone || this.#ended || this.#sent) return
    this.#gone = true
    this.#onGone?.()
  }

  proceed(): void {
    if (this.#expects && !this.#begun && !this.#gone) this.#owner.headers([[':status', '100']], false)
  }

  head(status: number, headers: Headers): void {
    const head: (readonly [string, string])[] = [[':status', String(status)]]
    let dated = false
    for (const [written, value] of headers) {
      const name = written.toLowerCase()
      // Never the value: it may be a secret.
      if (!isHeader(name, value)) throw new Error(`The header ${JSON.stringify(name)} cannot be written`)
      if (name === 'content-length') this.#left = Number(value)
      else if (name === 'date') dated = true
      head.push([name, value])
    }
    if (!dated) head.push(['date', httpDate()])
    this.#empty = this.#headOnly || status === 204 || status === 304
    this.#head = head
  }

  flush(): void {
    this.#respond(false)
  }

  #respond(last: boolean): void {
    const head = this.#head
    this.#head = undefined
    if (head === undefined || this.#gone) return
    this.#begun = true
    if (last) this.#sent = true
    this.#owner.headers(head, last)
  }

  /** The last piece of a body carries the end of its stream: one frame less. */
  write(bytes: Buffer): boolean {
    if (this.#empty || bytes.length === 0) return true
    this.#respond(false)
    if (this.#gone || this.#whole) return true
    const left = this.#left
    const piece = left !== undefined && bytes.length > left ? bytes.subarray(0, left) : bytes
    if (left !== undefined) {
      this.#left = left - piece.length
      this.#whole = this.#left === 0
    }
    this.#pieces.push(piece)
    this.#queued += piece.length
    this.#owner.waiting()
    return this.#queued === 0 && !this.#owner.full
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  /** There is room again. */
  drained(): void {
    if (this.#queued > 0 || this.#owner.full) return
    const listener = this.#onDrain
    this.#onDrain = undefined
    listener?.()
  }

  end(trailers: Headers = []): void {
    if (this.#ended) return
    this.#ended = true
    if (this.#gone || this.#whole) return
    this.#whole = true
    this.#trailers = trailers.filter(([name, value]) => isHeader(name, value))
    if (this.#head !== undefined && this.#trailers.length === 0) {
      this.#respond(true)
      return
    }
    this.#respond(false)
    this.#owner.waiting()
  }

  last(): void {
    // Every answer has a stream of its own.
  }

  destroy(): void {
    this.#owner.cut()
  }

  /** How many bytes wait, and whether anything does: an end can have none. */
  get queued(): number {
    return this.#queued
  }

  get pending(): boolean {
    return this.#queued > 0 || (this.#whole && !this.#sent)
  }

  /** The next piece that may be so long. Trailers are no piece: `endWith` has them. */
  take(most: number): Piece {
    const first = this.#pieces[0] ?? NOTHING
    const bytes = first.length > most ? first.subarray(0, most) : first
    if (bytes.length < first.length) this.#pieces[0] = first.subarray(bytes.length)
    else this.#pieces.shift()
    this.#queued -= bytes.length
    const last = this.#whole && this.#queued === 0 && this.#trailers.length === 0
    if (last) this.#sent = true
    return { bytes, last }
  }

  /** The trailers, when nothing but they are left to be said. */
  endWith(): Headers | undefined {
    if (!this.#whole || this.#sent || this.#queued > 0 || this.#trailers.length === 0) return undefined
    this.#sent = true
    return this.#trailers.map(([name, value]) => [name.toLowerCase(), value] as const)
  }
}
