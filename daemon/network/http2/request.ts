import { Readable } from 'node:stream'
import type { AgentRequest } from '../agent-request.ts'
import type { Arrival } from '../gate.ts'
import type { Headers } from '../request-nature.ts'
import { ByteQueue } from './byte-queue.ts'
import type { RequestFields } from './request-fields.ts'

/** One request of an agent over HTTP/2. Its body waits here until somebody reads it, and only then may more of it come. */
export class Http2Request implements AgentRequest {
  readonly http2 = true
  readonly method: string
  readonly target: string
  readonly headers: Headers
  readonly arrival: Arrival
  readonly #length: number | undefined
  readonly #hasBody: boolean
  /** So many bytes are nobody's here any more: the agent may send as many. */
  readonly #taken: (bytes: number) => void
  readonly #queue = new ByteQueue()
  #received = 0
  #complete: boolean
  #discarded = false
  #wanted = false
  #ending = false
  #whole: Buffer | undefined
  #body: Readable | undefined

  constructor(
    { method, path, length }: RequestFields,
    fields: Headers,
    arrival: Arrival,
    hasBody: boolean,
    taken: (bytes: number) => void,
  ) {
    this.method = method
    this.target = path
    // A body whose length is not said is judged like one in chunks: a read has none.
    this.headers = hasBody && length === undefined ? [...fields, ['transfer-encoding', 'chunked']] : fields
    this.arrival = arrival
    this.#length = hasBody ? length : undefined
    this.#hasBody = hasBody
    this.#complete = !hasBody
    this.#taken = taken
  }

  get whole(): Buffer | undefined {
    return this.#whole
  }

  get body(): Readable | undefined {
    return this.#body
  }

  get complete(): boolean {
    return this.#complete
  }

  /** False: that is more than the head said. */
  arrive(bytes: Buffer): boolean {
    this.#received += bytes.length
    if (this.#length !== undefined && this.#received > this.#length) return false
    if (this.#discarded) this.#taken(bytes.length)
    else if (bytes.length > 0) this.#queue.push(bytes)
    return true
  }

  /** Nothing follows. False: that is less than the head said. */
  finish(): boolean {
    if (this.#length !== undefined && this.#received !== this.#length) return false
    this.#complete = true
    return true
  }

  /** Everything that came together with the head has been read. */
  settle(): void {
    if (!this.#hasBody) return
    if (this.#complete) {
      this.#whole = this.#queue.all()
      this.#taken(this.#whole.length)
      return
    }
    this.#body = new Readable({
      // What waits, waits in the queue above: it takes no more than its bytes.
      highWaterMark: 1,
      read: () => {
        this.#wanted = true
        this.flush()
      },
      destroy: (error, done) => {
        this.#drop()
        done(error)
      },
    })
    // Whoever reads it hears of the error; before anybody reads, it must not end the process.
    this.#body.on('error', () => undefined)
  }

  /** What arrived goes on, as far as somebody wants it. */
  flush(): void {
    const body = this.#body
    if (body === undefined || this.#discarded) return
    while (this.#wanted) {
      const piece = this.#queue.take()
      if (piece === undefined) break
      this.#taken(piece.length)
      this.#wanted = body.push(piece)
    }
    if (this.#complete && this.#queue.length === 0 && !body.readableEnded && !this.#discarded) this.#end(body)
  }

  #end(body: Readable): void {
    if (this.#ending) return
    this.#ending = true
    body.push(null)
  }

  discard(): void {
    this.#drop()
    // Its reader has what it wanted.
    this.#body?.destroy()
  }

  /** Nothing more of it comes, or is wanted. */
  break(error: Error): void {
    const complete = this.#complete
    // Also where nobody was handed a body yet: what came of it takes room of the whole connection.
    this.#drop()
    this.#body?.destroy(complete ? undefined : error)
  }

  #drop(): void {
    this.#discarded = true
    const left = this.#queue.length
    if (left === 0) return
    this.#queue.all()
    this.#taken(left)
  }
}
