import type { Duplex } from 'node:stream'
import type { Headers } from '../request-nature.ts'
import type { Http2Limits } from './ceilings.ts'
import { CODE, type Code, Http2Fault } from './fault.ts'
import { FLAG, frame, frameHead, MOST_PAYLOAD, numberFrame, TYPE } from './frames.ts'
import { HeaderWriter } from './header-writer.ts'
import type { Stream } from './stream.ts'
import { FIRST_WINDOW, OutWindow } from './windows.ts'

/** Everything that is written on one connection, and the bodies that wait until they may be. */
export class Sender {
  readonly #socket: Duplex
  readonly #limits: Http2Limits
  /** Everything of this stream was sent. */
  readonly #said: (stream: Stream) => void
  readonly #headers = new HeaderWriter()
  readonly #window = new OutWindow(FIRST_WINDOW)
  /** Streams with something to send and, as far as is known, room for it. In turns. */
  readonly #ready = new Set<Stream>()
  #corked = false

  constructor(socket: Duplex, limits: Http2Limits, said: (stream: Stream) => void) {
    this.#socket = socket
    this.#limits = limits
    this.#said = said
  }

  /** What everything else is said under. */
  introduce(): void {
    const { streams, streamWindowBytes, headerBytes, sessionWindowBytes } = this.#limits
    // MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_HEADER_LIST_SIZE.
    const settings = [[3, streams] as const, [4, streamWindowBytes] as const, [6, headerBytes] as const]
    const payload = Buffer.alloc(6 * settings.length)
    for (const [at, [name, value]] of settings.entries()) {
      payload.writeUInt16BE(name, 6 * at)
      payload.writeUInt32BE(value, 6 * at + 2)
    }
    this.frame(TYPE.SETTINGS, 0, 0, payload)
    this.allow(0, sessionWindowBytes - FIRST_WINDOW)
  }

  get full(): boolean {
    return this.#socket.writableLength >= this.#limits.fullBytes
  }

  /** What was written waits because the agent does not read it. */
  get unread(): boolean {
    return this.#socket.writableLength > this.#limits.unreadBytes
  }

  /** Everything of one turn leaves in one write: over TLS each is a record. */
  write(bytes: Buffer): void {
    const socket = this.#socket
    if (!this.#corked) {
      this.#corked = true
      socket.cork()
      process.nextTick(() => {
        this.#corked = false
        socket.uncork()
      })
    }
    socket.write(bytes)
  }

  frame(type: number, flags: number, stream: number, payload: Buffer): void {
    this.write(frame(type, flags, stream, payload))
  }

  reset(stream: number, code: Code): void {
    this.write(numberFrame(TYPE.RST_STREAM, stream, code))
  }

  /** The last word: what was opened until now, and why nothing more is heard. */
  leave(last: number, code: Code): void {
    const payload = Buffer.alloc(8)
    payload.writeUInt32BE(last, 0)
    payload.writeUInt32BE(code, 4)
    this.frame(TYPE.GOAWAY, 0, 0, payload)
  }

  /** More may come: of this stream, or of all of them with 0. */
  allow(stream: number, bytes: number): void {
    if (bytes > 0) this.write(numberFrame(TYPE.WINDOW_UPDATE, stream, bytes))
  }

  headers(stream: Stream, fields: Headers, last: boolean): void {
    const block = this.#headers.write(fields)
    for (let at = 0; at === 0 || at < block.length; at += MOST_PAYLOAD) {
      const piece = block.subarray(at, at + MOST_PAYLOAD)
      const end = at + MOST_PAYLOAD >= block.length ? FLAG.END_HEADERS : 0
      if (at > 0) this.frame(TYPE.CONTINUATION, end, stream.id, piece)
      else this.frame(TYPE.HEADERS, end | (last ? FLAG.END_STREAM : 0), stream.id, piece)
    }
    if (last) this.#said(stream)
  }

  /** The agent has more room: for one stream, or for all of them. */
  grow(stream: Stream | undefined, bytes: number): boolean {
    if (!(stream?.out ?? this.#window).grow(bytes)) return false
    if (stream === undefined) this.pump()
    else this.send(stream)
    return true
  }

  /** It was told how much room each stream has from the beginning. */
  growAll(streams: readonly Stream[], bytes: number): void {
    for (const stream of streams)
      if (!stream.out.grow(bytes)) throw new Http2Fault(CODE.FLOW_CONTROL_ERROR, 'A window is too large')
    for (const stream of streams) if (stream.answer.queued > 0) this.#ready.add(stream)
    this.pump()
  }

  send(stream: Stream): void {
    const { answer } = stream
    if (!answer.pending || stream.said) return
    if (answer.queued === 0) {
      // The end of a body needs no room.
      this.#piece(stream, 0)
      return
    }
    this.#ready.add(stream)
    this.pump()
  }

  forget(stream: Stream): void {
    this.#ready.delete(stream)
  }

  /** Writes as much as there is room for; a stream that has more to say goes to the end of the line. */
  pump(): void {
    for (const stream of this.#ready) {
      // Bodies only: without room nobody has a turn, and looking at all of them each time would be dear.
      if (this.full || this.#window.left <= 0) break
      this.#ready.delete(stream)
      const { answer, out } = stream
      const most = Math.min(this.#window.left, out.left, MOST_PAYLOAD)
      if (most <= 0) continue
      this.#piece(stream, most)
      if (answer.queued > 0) this.#ready.add(stream)
      // Trailers, which need no room.
      else if (answer.pending) this.#piece(stream, 0)
    }
  }

  #piece(stream: Stream, most: number): void {
    const { answer, out, id } = stream
    const trailers = answer.endWith()
    if (trailers !== undefined) {
      this.headers(stream, trailers, true)
      return
    }
    const { bytes, last } = answer.take(most)
    this.#window.sent(bytes.length)
    out.sent(bytes.length)
    this.write(frameHead(TYPE.DATA, last ? FLAG.END_STREAM : 0, id, bytes.length))
    if (bytes.length > 0) this.write(bytes)
    if (last) this.#said(stream)
    else answer.drained()
  }
}
