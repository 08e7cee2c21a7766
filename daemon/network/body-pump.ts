import type { Duplex, Readable } from 'node:stream'
import type { OutgoingCall } from './exchange.ts'

export interface PumpOwner {
  /** A piece went on its way. */
  sent(): void
  /** The body broke off, or is not as long as was said: the request is no request. */
  failed(error: Error): void
}

/** Writes a streamed body behind its head, no faster than it leaves, and exactly as long as the head says. */
export class BodyPump {
  readonly #out: OutgoingCall
  readonly #body: Readable
  readonly #socket: Duplex
  readonly #owner: PumpOwner
  #size = 0
  #chunks = 0
  #whole = false

  constructor(out: OutgoingCall, body: Readable, socket: Duplex, owner: PumpOwner) {
    this.#out = out
    this.#body = body
    this.#socket = socket
    this.#owner = owner
    if (body.destroyed && !body.readableEnded) {
      owner.failed(new Error('The agent went away'))
      return
    }
    body.on('data', this.#piece).on('end', this.#ended).on('error', this.#broken).on('close', this.#closed)
    socket.on('drain', this.#drained)
  }

  /** All of it was written. */
  get whole(): boolean {
    return this.#whole
  }

  /** Lets go of the stream, which is left as it is. */
  stop(): void {
    this.#body.off('data', this.#piece).off('end', this.#ended).off('close', this.#closed)
    this.#socket.off('drain', this.#drained)
  }

  readonly #piece = (chunk: Buffer): void => {
    this.#size += chunk.length
    const { length, sending } = this.#out
    try {
      if (length !== undefined && this.#size > length)
        throw new Error('The body is longer than it was said to be')
      sending?.(chunk.length)
    } catch (error) {
      this.#owner.failed(error as Error)
      return
    }
    this.#owner.sent()
    if (chunk.length > 0 && !this.#write(chunk)) this.#body.pause()
  }

  /** The end of a piece goes with the beginning of the next: over TLS each write is a record. */
  #write(chunk: Buffer): boolean {
    const socket = this.#socket
    if (this.#out.length !== undefined) return socket.write(chunk)
    socket.cork()
    socket.write(`${this.#chunks++ === 0 ? '' : '\r\n'}${chunk.length.toString(16)}\r\n`, 'latin1')
    const more = socket.write(chunk)
    socket.uncork()
    return more
  }

  readonly #drained = (): void => void this.#body.resume()

  readonly #ended = (): void => {
    const { length } = this.#out
    if (length !== undefined && this.#size < length) {
      this.#owner.failed(new Error('The body is shorter than it was said to be'))
      return
    }
    if (length === undefined) this.#socket.write(`${this.#chunks === 0 ? '' : '\r\n'}0\r\n\r\n`, 'latin1')
    this.#whole = true
    this.#owner.sent()
  }

  readonly #broken = (error: Error): void => {
    if (!this.#whole) this.#owner.failed(error)
  }

  readonly #closed = (): void => {
    if (!this.#body.readableEnded) this.#owner.failed(new Error('The agent went away'))
  }
}
