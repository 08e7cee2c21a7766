import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { AgentRequest, AgentResponse, AskedHead } from './agent-request.ts'
import { NetworkDenied } from './denial.ts'
import { type Arrival, arrivalOf } from './gate.ts'
import { type AnswerOwner, Http1Answer } from './http1-answer.ts'
import type { NetworkLimits } from './limits.ts'
import type { Headers } from './request-nature.ts'
import { type RequestHead, RequestParser, type RequestSink } from './request-parser.ts'

/** What a connection of an agent is told to do with what it reads. */
export interface Http1Owner {
  serve(from: AgentRequest, to: AgentResponse): void
  /** The connection belongs to the owner from here; `rest` came behind the head. */
  connect(asked: AskedHead, socket: Socket, rest: Buffer): void
  /** To a WebSocket, by a GET without a body. */
  upgrade(asked: AskedHead, socket: Socket, rest: Buffer): void
  /** What was read is no request. The connection belongs to the owner. */
  malformed(denied: NetworkDenied, socket: Socket): void
  closed(connection: Http1Agent): void
}

/** Of requests that come before their turn. */
const WAITING_BYTES = 65_536

/** One connection of an agent that speaks HTTP/1.1: one request after the other, each answered before the next is read. */
export class Http1Agent implements RequestSink, AnswerOwner {
  readonly #socket: Socket
  readonly #limits: NetworkLimits
  readonly #owner: Http1Owner
  readonly #arrival: Arrival
  readonly #parser: RequestParser
  #request: Http1Request | undefined
  #answer: Http1Answer | undefined
  /** A head that was read in this turn; it is served behind it, when what came with it is known. */
  #fresh: Http1Request | undefined
  #takenOver: RequestHead | undefined
  #reading = false
  #closing = false
  /** Answers were written that the agent has not read. */
  #unread = false
  /** When patience ends, on the clock of `performance.now()`. */
  #until: number

  constructor(socket: Socket, limits: NetworkLimits, owner: Http1Owner) {
    this.#socket = socket
    this.#limits = limits
    this.#owner = owner
    this.#arrival = arrivalOf(socket)
    this.#parser = new RequestParser(limits, this)
    this.#until = performance.now() + limits.headersMs
    socket.on('data', this.#data).on('end', this.#ended).on('close', this.#closed)
    socket.resume()
  }

  readonly #data = (chunk: Buffer): void => {
    if (this.#closing) return
    if (this.#parser.idle) this.#until = performance.now() + this.#limits.headersMs
    this.#read(() => this.#parser.push(chunk))
    if (this.#parser.ended && this.#parser.waiting > WAITING_BYTES) this.#socket.pause()
  }

  /** Requests that came in one piece are served one after the other in this loop, not one inside the other. */
  #read(step: () => void): void {
    this.#reading = true
    try {
      step()
      this.#request?.flush()
      for (;;) {
        this.#begin()
        if (this.#answer !== undefined || this.#closing || !this.#parser.ended || this.#full()) break
        this.#parser.next()
      }
    } catch (error) {
      this.#refuse(error)
    } finally {
      this.#reading = false
    }
  }

  #begin(): void {
    const taken = this.#takenOver
    const fresh = this.#fresh
    this.#fresh = undefined
    if (taken !== undefined) this.#handOver(taken)
    else if (fresh !== undefined) {
      const answer = new Http1Answer(this.#socket, fresh.parsed, this)
      this.#request = fresh
      this.#answer = answer
      this.#until = performance.now() + this.#limits.requestMs
      fresh.settle()
      this.#owner.serve(fresh, answer)
    }
  }

  head(head: RequestHead): void {
    const { method, upgrade, expect, hasBody } = head
    if (method === 'CONNECT') {
      // One in the other could go on without end, and each of them costs memory until the last one is closed.
      if (this.#arrival.via !== 'explicit')
        throw new NetworkDenied(400, 'nested-connect', 'A tunnel begins at the proxy, not in a connection')
      this.#takenOver = head
      return
    }
    if (expect !== undefined && expect !== '100-continue')
      throw new NetworkDenied(417, 'bad-expectation', 'Nothing but 100-continue can be expected')
    // Behind an upgrade a body could not be told from what the new protocol says.
    if (upgrade !== undefined && (method !== 'GET' || hasBody))
      throw new NetworkDenied(400, 'bad-upgrade', 'Only a GET without a body can be upgraded')
    if (upgrade === 'websocket') this.#takenOver = head
    else
      this.#fresh = new Http1Request(
        upgrade === undefined ? head : withoutUpgrade(head),
        this.#arrival,
        this.#socket,
      )
  }

  data(bytes: Buffer): void {
    const request = this.#fresh ?? this.#request
    request?.arrive(bytes)
  }

  end(): void {
    const request = this.#fresh ?? this.#request
    request?.finish()
    if (this.#fresh === undefined && this.#answer === undefined) this.#next()
  }

  #handOver(head: RequestHead): void {
    const { method, target, headers } = head
    this.#letGo()
    this.#socket.pause()
    const asked: AskedHead = { method, target, headers, arrival: this.#arrival, http2: false }
    const rest = this.#parser.take()
    if (method === 'CONNECT') this.#owner.connect(asked, this.#socket, rest)
    else this.#owner.upgrade(asked, this.#socket, rest)
  }

  answered(last: boolean): void {
    const request = this.#request
    this.#answer = undefined
    if (last) {
      this.#closing = true
      this.#request = undefined
      // What is still to come was not wanted. Reading it would let the agent go on for ever.
      this.#socket.destroySoon()
      return
    }
    if (request?.complete === false) request.discard()
    else this.#next()
  }

  /** Answer and request are both over. */
  #next(): void {
    this.#request = undefined
    this.#until = performance.now() + this.#limits.keepAliveMs
    if (this.#reading || this.#closing || this.#full()) return
    this.#read(() => this.#parser.next())
    if (this.#parser.waiting <= WAITING_BYTES && this.#socket.isPaused()) this.#socket.resume()
  }

  /** Who sends requests and does not read the answers gets no more of them: they would be held in memory. */
  #full(): boolean {
    if (!this.#unread && this.#socket.writableNeedDrain) {
      this.#unread = true
      this.#socket.once('drain', () => {
        this.#unread = false
        if (this.#answer === undefined && this.#parser.ended) this.#next()
      })
    }
    return this.#unread
  }

  /** Ends what nobody waits for any longer. */
  tick(now: number): void {
    if (now < this.#until || this.#closing) return
    if (this.#request === undefined && (this.#parser.idle || this.#unread)) {
      this.#socket.destroy()
      return
    }
    // A body that is whole is not slow: its answer has its own patience.
    if (this.#request?.complete === true) return
    this.#refuse(new NetworkDenied(408, 'too-slow', 'The request came too slowly'))
  }

  #refuse(error: unknown): void {
    const denied =
      error instanceof NetworkDenied
        ? error
        : new NetworkDenied(502, 'internal', 'The gate failed', { cause: error })
    const answer = this.#answer
    if (answer === undefined) {
      this.#letGo()
      this.#owner.malformed(denied, this.#socket)
    } else if (answer.begun) this.#socket.destroy()
    else {
      // Whoever reads the body hears why it broke, and answers with that.
      answer.last()
      this.#closingBehind(denied)
    }
  }

  #closingBehind(denied: NetworkDenied): void {
    this.#socket.off('data', this.#data)
    this.#socket.resume()
    this.#request?.break(denied)
  }

  #letGo(): void {
    this.#closing = true
    this.#socket.off('data', this.#data).off('end', this.#ended).off('close', this.#closed)
    this.#owner.closed(this)
  }

  /** With an answer under way it is somebody who hung up. */
  readonly #ended = (): void => {
    if (this.#answer !== undefined) this.#socket.destroy()
    else this.#socket.end()
  }

  readonly #closed = (): void => {
    this.#closing = true
    this.#owner.closed(this)
    this.#request?.break(new Error('The agent went away'))
    this.#answer?.leave()
  }
}

/** Any other offer (h2c) may be ignored by a server, and is: the request goes on without it. */
const withoutUpgrade = (head: RequestHead): RequestHead => ({
  ...head,
  headers: head.headers.filter(([name]) => name !== 'upgrade'),
  keepAlive: false,
})

class Http1Request implements AgentRequest {
  readonly http2 = false
  readonly parsed: RequestHead
  readonly arrival: Arrival
  readonly #socket: Socket
  #complete = false
  #discarded = false
  #settled = false
  #pieces: Buffer[] = []
  #whole: Buffer | undefined
  #body: Readable | undefined

  constructor(parsed: RequestHead, arrival: Arrival, socket: Socket) {
    this.parsed = parsed
    this.arrival = arrival
    this.#socket = socket
  }

  get method(): string {
    return this.parsed.method
  }

  get target(): string {
    return this.parsed.target
  }

  get headers(): Headers {
    return this.parsed.headers
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

  /** Everything that came together with the head has been read. */
  settle(): void {
    this.#settled = true
    if (!this.parsed.hasBody) return
    const pieces = this.#pieces
    this.#pieces = []
    const [first] = pieces
    if (this.#complete) {
      this.#whole = pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces)
      return
    }
    const socket = this.#socket
    const body = new Readable({ highWaterMark: 65_536, read: () => void socket.resume() })
    // Whoever reads it hears of the error; before anybody reads, it must not end the process.
    body.on('error', () => undefined)
    this.#body = body
    if (first !== undefined) body.push(pieces.length === 1 ? first : Buffer.concat(pieces))
  }

  arrive(bytes: Buffer): void {
    if (!this.#discarded) this.#pieces.push(bytes)
  }

  /** What one read brought goes on as one piece: in chunks of one byte a body takes a hundred times its size. */
  flush(): void {
    const pieces = this.#pieces
    const [first] = pieces
    if (!this.#settled || first === undefined) return
    this.#pieces = []
    if (this.#discarded) return
    if (this.#body?.push(pieces.length === 1 ? first : Buffer.concat(pieces)) === false) this.#socket.pause()
  }

  finish(): void {
    this.flush()
    this.#complete = true
    if (!this.#discarded) this.#body?.push(null)
  }

  discard(): void {
    this.#discarded = true
    // Its reader has what it wanted.
    this.#body?.destroy()
    this.#socket.resume()
  }

  break(error: Error): void {
    if (!this.#complete) this.#body?.destroy(error)
  }
}
