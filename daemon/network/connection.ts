import type { Duplex } from 'node:stream'
import { AnswerParser, type AnswerSink, BadAnswer } from './answer-parser.ts'
import { BodyPump } from './body-pump.ts'
import type { Call } from './exchange.ts'
import type { NetworkLimits } from './limits.ts'
import type { Headers } from './request-nature.ts'

export interface ConnectionOwner {
  /** It can carry another request. */
  free(connection: Connection): void
  /** It ended; `again` is a request that it could not carry any more and that may be sent on another one. */
  gone(connection: Connection, again: Call | undefined): void
}

/** Unused connections are closed before most servers do, so that few requests meet one that is closing. */
const IDLE_MS = 4_000

/** One socket to the other end with at most one request in it. Whatever is strange about an answer is its last. */
export class Connection implements AnswerSink {
  readonly #socket: Duplex
  readonly #limits: NetworkLimits
  readonly #owner: ConnectionOwner
  #call: Call | undefined
  #parser: AnswerParser | undefined
  #pump: BodyPump | undefined
  #used = false
  #silent = true
  #paused = false
  #gone = false
  #idleMs = IDLE_MS
  /** When patience ends, on the clock of `performance.now()`. */
  #until = performance.now() + IDLE_MS

  constructor(socket: Duplex, limits: NetworkLimits, owner: ConnectionOwner) {
    this.#socket = socket
    this.#limits = limits
    this.#owner = owner
    socket.on('data', this.#data)
    socket.on('end', this.#ended)
    socket.on('error', this.#broken)
    socket.on('close', this.#closed)
  }

  run(call: Call): void {
    const { out } = call
    this.#call = call
    this.#silent = true
    call.runs(this)
    const { responseHeaderBytes: headerBytes, responseMs } = this.#limits
    this.#parser = new AnswerParser({ head: out.method === 'HEAD', upgrade: out.upgrade, headerBytes }, this)
    out.handler.leaving?.()
    if (call.over) return
    this.#until = performance.now() + responseMs
    const { head, body } = out
    if (body === null) this.#socket.write(head, 'latin1')
    else if (Buffer.isBuffer(body)) this.#socket.write(Buffer.concat([Buffer.from(head, 'latin1'), body]))
    else {
      this.#socket.write(head, 'latin1')
      this.#pump = new BodyPump(out, body, this.#socket, {
        sent: () => {
          this.#until = performance.now() + responseMs
        },
        failed: (error) => call.abort(error),
      })
    }
  }

  /** Ends what nobody waits for any longer: silent answers, and connections without a request. */
  tick(now: number): void {
    if (now < this.#until || this.#paused) return
    const error = Object.assign(new Error('The answer took too long'), { code: 'ETIMEDOUT' })
    if (this.#call === undefined) this.cut()
    else this.#call.abort(error)
  }

  cut(): void {
    this.#leave(undefined)
    this.#socket.destroy()
  }

  close(error: Error): void {
    if (this.#call === undefined) this.cut()
    else this.#call.abort(error)
  }

  pause(): void {
    this.#paused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#paused = false
    this.#until = performance.now() + this.#limits.responseIdleMs
    this.#socket.resume()
  }

  readonly #data = (chunk: Buffer): void => {
    const call = this.#call
    const parser = this.#parser
    // Nobody asked: whatever this is, it must not become the answer to the next request.
    if (call === undefined || parser === undefined) {
      this.cut()
      return
    }
    this.#silent = false
    this.#until = performance.now() + this.#limits.responseIdleMs
    try {
      parser.push(chunk)
      if (!call.over) call.out.handler.arrived?.()
    } catch (error) {
      call.abort(error as Error)
    }
    if (parser.done) this.#settle(parser)
  }

  head(status: number, headers: Headers): void {
    const hint = headers.find(([name]) => name === 'keep-alive')?.[1]
    const seconds = hint === undefined ? undefined : /timeout=(\d{1,6})/i.exec(hint)?.[1]
    this.#idleMs = seconds === undefined ? IDLE_MS : Math.min(IDLE_MS, Number(seconds) * 1000 - 1_000)
    if (this.#call?.over === false) this.#call.out.handler.head(status, headers)
  }

  data(bytes: Buffer): void {
    if (this.#call?.over === false) this.#call.out.handler.data(bytes)
  }

  end(trailers: Headers): void {
    const call = this.#call
    if (call === undefined || call.over) return
    call.finish()
    try {
      call.out.handler.end(trailers)
    } catch (error) {
      // An answer that cannot be passed on as it is: whoever waits for its end must hear of one.
      call.out.handler.failed(error as Error)
    }
  }

  upgrade(headers: Headers, rest: Buffer): void {
    const call = this.#call
    if (call === undefined || call.over) return
    call.finish()
    const socket = this.#socket
    this.#leave(undefined)
    socket
      .off('data', this.#data)
      .off('end', this.#ended)
      .off('error', this.#broken)
      .off('close', this.#closed)
    socket.pause()
    if (rest.length > 0) socket.unshift(rest)
    call.out.handler.upgraded?.(headers, socket)
  }

  /** The answer is whole. Behind a body that was not taken, or bytes that nobody asked for, nothing can follow. */
  #settle(parser: AnswerParser): void {
    if (this.#gone) return
    const sent = this.#pump === undefined || this.#pump.whole
    this.#forget()
    if (!parser.reusable || !sent || this.#idleMs <= 0) {
      this.cut()
      return
    }
    this.#used = true
    this.#until = performance.now() + this.#idleMs
    if (this.#paused) this.resume()
    this.#owner.free(this)
  }

  readonly #ended = (): void => {
    const parser = this.#parser
    try {
      if (this.#call !== undefined) parser?.close()
      this.cut()
    } catch (error) {
      this.#broken(error as Error)
    }
  }

  readonly #closed = (): void =>
    this.#broken(new BadAnswer('ENDED_EARLY', 'The other end closed the connection'))

  readonly #broken = (error: Error): void => {
    const call = this.#call
    if (call !== undefined && !call.over && this.#used && this.#silent && call.repeatable) {
      // The server closed it while the request was on its way, as it may at any time.
      call.again = true
      call.runs(undefined)
      this.#leave(call)
      this.#socket.destroy()
    } else if (call !== undefined && !call.over) call.abort(error)
    else this.cut()
  }

  #forget(): void {
    this.#pump?.stop()
    this.#pump = undefined
    this.#call = undefined
    this.#parser = undefined
  }

  #leave(again: Call | undefined): void {
    this.#forget()
    if (this.#gone) return
    this.#gone = true
    this.#owner.gone(this, again)
  }
}
