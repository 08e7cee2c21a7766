import type {
  Http2Server,
  Http2Session,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2'
import type { Duplex, Readable } from 'node:stream'
import type { AgentRequest, AgentResponse } from './agent-request.ts'
import { NetworkDenied } from './denial.ts'
import { type Arrival, arrivalOf } from './gate.ts'
import { pairs } from './headers.ts'
import { Resets, TinyFrames } from './http2-frames.ts'
import type { NetworkLimits } from './limits.ts'
import { type Headers, header } from './request-nature.ts'

export interface Http2Owner {
  serve(from: AgentRequest, to: AgentResponse): void
  denied(subject: string, denied: NetworkDenied): void
}

/** The connections of an agent that speak HTTP/2. */
export class Http2Agents {
  readonly #limits: NetworkLimits
  readonly #owner: Http2Owner
  readonly #sessions = new Map<Http2Session, { readonly tiny: TinyFrames; readonly resets: Resets }>()
  #server: Http2Server | undefined

  constructor(limits: NetworkLimits, owner: Http2Owner) {
    this.#limits = limits
    this.#owner = owner
  }

  take(socket: Duplex): void {
    this.#server ??= this.#makeServer()
    this.#server.emit('connection', socket)
  }

  /** With the first connection that speaks it: most agents have none, and loading it takes as long as starting one. */
  #makeServer(): Http2Server {
    const limits = this.#limits
    const server = process.getBuiltinModule('node:http2').createServer({
      settings: {
        maxConcurrentStreams: limits.streams,
        initialWindowSize: limits.streamWindowBytes,
        enableConnectProtocol: false,
        maxHeaderListSize: limits.headerBytes,
      },
      maxHeaderListPairs: limits.headerCount,
      // Megabytes that one connection may hold.
      maxSessionMemory: 6,
    })
    server.on('session', (session) => this.#admit(session))
    const serve = (
      stream: ServerHttp2Stream,
      headers: IncomingHttpHeaders,
      _flags: number,
      raw: readonly string[],
    ): void => {
      stream.on('error', () => undefined)
      if (stream.session !== undefined) this.#watch(stream.session, stream)
      this.#owner.serve(new Http2Request(stream, headers, pairs(raw)), new Http2Answer(stream, headers))
    }
    // The types do not know the last of its arguments.
    server.on('stream', serve as () => void)
    return server
  }

  #admit(session: ServerHttp2Session): void {
    const limits = this.#limits
    if (this.#sessions.size >= limits.sessions) {
      const why = 'Too many HTTP/2 connections'
      this.#owner.denied('connection', new NetworkDenied(503, 'too-many-connections', why))
      session.on('error', () => undefined)
      session.destroy()
      return
    }
    const resets = new Resets(limits.resets, limits.resetsPerSecond)
    this.#sessions.set(session, { tiny: new TinyFrames(), resets })
    session.setLocalWindowSize(limits.sessionWindowBytes)
    session.once('close', () => this.#sessions.delete(session))
    session.on('error', () => session.destroy())
    session.setTimeout(limits.requestMs, () => session.close())
  }

  #watch(session: Http2Session, stream: ServerHttp2Stream): void {
    const known = this.#sessions.get(session)
    known?.tiny.watch(stream)
    stream.once('aborted', () => {
      if (known === undefined || session.destroyed || known.resets.count()) return
      const why = 'Too many requests were taken back over one HTTP/2 connection'
      this.#owner.denied('connection', new NetworkDenied(429, 'too-many-resets', why))
      // NGHTTP2_ENHANCE_YOUR_CALM
      session.destroy(undefined, 11)
    })
  }

  close(): void {
    for (const session of this.#sessions.keys()) session.destroy()
  }
}

class Http2Request implements AgentRequest {
  readonly http2 = true
  readonly whole = undefined
  readonly method: string
  readonly target: string
  readonly headers: Headers
  readonly arrival: Arrival
  readonly #stream: ServerHttp2Stream
  readonly #hasBody: boolean

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: Headers) {
    this.#stream = stream
    this.method = String(headers[':method'] ?? '')
    this.target = String(headers[':path'] ?? '')
    this.#hasBody = !stream.endAfterHeaders
    // A body whose length is not said is judged like one in chunks: a read has none.
    const unsaid = this.#hasBody && header(raw, 'content-length') === undefined
    this.headers = unsaid ? [...raw, ['transfer-encoding', 'chunked']] : raw
    const socket = stream.session?.socket
    // A session that is gone has nothing to say; `connect` without a host matches no request.
    this.arrival =
      socket === undefined
        ? { via: 'connect', port: 0, host: undefined, tls: true, sni: undefined }
        : arrivalOf(socket)
  }

  get body(): Readable | undefined {
    return this.#hasBody ? this.#stream : undefined
  }

  get complete(): boolean {
    return !this.#hasBody || this.#stream.readableEnded
  }

  discard(): void {
    if (!this.#stream.readableEnded) this.#stream.resume()
  }
}

/** Headers that Node would add of its own accord are not wanted, but for the date. */
class Http2Answer implements AgentResponse {
  readonly #stream: ServerHttp2Stream
  readonly #expects: boolean
  #head: Record<string, string[] | string | number> | undefined
  #begun = false
  #ended = false
  /** Of the body, where it was said how long it is. */
  #left: number | undefined
  #trailers: Headers = []
  #onGone: (() => void) | undefined

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#stream = stream
    this.#expects = String(headers.expect ?? '').toLowerCase() === '100-continue'
    stream.once('close', () => {
      if (!this.#ended) this.#onGone?.()
    })
  }

  get begun(): boolean {
    return this.#begun
  }

  get gone(): boolean {
    return this.#stream.destroyed && !this.#ended
  }

  onGone(listener: () => void): void {
    this.#onGone = listener
  }

  proceed(): void {
    if (this.#expects && !this.#begun && this.#usable) this.#stream.additionalHeaders({ ':status': 100 })
  }

  head(status: number, headers: Headers): void {
    // Some sites have statuses of their own; Node would end the stream without a word.
    if (status > 599)
      throw new NetworkDenied(
        502,
        'upstream-failed',
        `The other end answered with status ${status}, which only HTTP/1.1 can pass on`,
      )
    const head: Record<string, string[] | string | number> = Object.create(null) as Record<string, string>
    head[':status'] = status
    for (const [name, value] of headers) {
      const before = head[name]
      // In place: the other end says how often it comes, and a copy for each would hold the event loop for seconds.
      if (Array.isArray(before)) before.push(value)
      else head[name] = before === undefined ? value : [String(before), value]
    }
    const length = head['content-length']
    this.#left = typeof length === 'string' ? Number(length) : undefined
    this.#head = head
  }

  get #usable(): boolean {
    return !this.#stream.destroyed && !this.#stream.closed
  }

  flush(): void {
    this.#respond(false)
  }

  #respond(endStream: boolean): void {
    const head = this.#head
    this.#head = undefined
    if (head === undefined) return
    if (!this.#usable) return
    this.#begun = true
    this.#stream.respond(head, { endStream, waitForTrailers: !endStream })
    if (!endStream) this.#stream.once('wantTrailers', () => this.#sendTrailers())
  }

  #sendTrailers(): void {
    if (this.#usable) this.#stream.sendTrailers(Object.fromEntries(this.#trailers))
  }

  /** The last piece of a body carries the end of its stream: one frame less. */
  write(bytes: Buffer): boolean {
    this.#respond(false)
    if (!this.#usable || this.#stream.writableEnded) return true
    if (this.#left === undefined) return this.#stream.write(bytes)
    this.#left -= bytes.length
    if (this.#left > 0) return this.#stream.write(bytes)
    this.#stream.end(bytes)
    return true
  }

  onDrain(listener: () => void): void {
    this.#stream.once('drain', listener)
  }

  end(trailers: Headers = []): void {
    if (this.#ended) return
    this.#ended = true
    this.#trailers = trailers
    if (this.#head !== undefined && trailers.length === 0) this.#respond(true)
    else this.#respond(false)
    if (this.#usable && !this.#stream.writableEnded) this.#stream.end()
  }

  last(): void {
    // Every answer has a stream of its own.
  }

  destroy(): void {
    this.#stream.destroy()
  }
}
