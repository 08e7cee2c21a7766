import type { Duplex } from 'node:stream'
import type { AgentRequest, AgentResponse } from '../agent-request.ts'
import { NetworkDenied } from '../denial.ts'
import { arrivalOf } from '../gate.ts'
import { Http2Answer } from './answer.ts'
import { Bucket, type Http2Limits } from './ceilings.ts'
import { CODE, type Code, Http2Fault } from './fault.ts'
import { checkFrame } from './frame-rules.ts'
import { FLAG, type Frame, FrameReader, TYPE, unpadded } from './frames.ts'
import { HeaderBlocks } from './header-blocks.ts'
import type { Field } from './header-table.ts'
import { Preface } from './preface.ts'
import { endOf, NO_REQUEST, refusalOf } from './refusal.ts'
import { Http2Request } from './request.ts'
import { areTrailers, type RequestFields, requestOf } from './request-fields.ts'
import { Sender } from './sender.ts'
import { EndedStreams, type Stream } from './stream.ts'
import { TURN_REQUESTS, type TurnClock, Turns } from './turns.ts'
import { FIRST_WINDOW, InWindow, initialWindowIn, OutWindow } from './windows.ts'

export interface SessionOwner {
  /** Open in all connections of the branch together. */
  readonly all: { streams: number }
  readonly turn: TurnClock
  serve(from: AgentRequest, to: AgentResponse): void
  /** What was asked cannot be judged; it wants an answer all the same. */
  refuse(denied: NetworkDenied, to: AgentResponse): void
  /** What was sent is no request and gets no answer. */
  denied(denied: NetworkDenied): void
  closed(session: Http2Session): void
}

/**
 * One connection of an agent that speaks HTTP/2, by RFC 9113: this end answers and asks nothing. Whatever an agent sends ends in
 * an answer, the end of its stream or the end of its connection, and takes memory and time within the ceilings.
 */
export class Http2Session {
  readonly #socket: Duplex
  readonly #turns: Turns
  readonly #limits: Http2Limits
  readonly #owner: SessionOwner
  readonly #sender: Sender
  readonly #preface = new Preface()
  readonly #reader = new FrameReader()
  readonly #blocks: HeaderBlocks
  readonly #streams = new Map<number, Stream>()
  /** Served when everything of the piece that they came in is read: then it is known what came with their heads. */
  readonly #fresh: Stream[] = []
  /** Ended by this end: what the agent sent before it knew is not held against it. */
  readonly #ended: EndedStreams
  readonly #in: InWindow
  readonly #chatter: Bucket
  #settled = false
  #outFirst = FIRST_WINDOW
  #last = 0
  #over = false
  /** The agent has said goodbye. */
  #leaving = false
  /** The last time that anything arrived or left, on the clock of `performance.now()`. */
  #active = performance.now()

  constructor(socket: Duplex, limits: Http2Limits, owner: SessionOwner) {
    this.#socket = socket
    this.#limits = limits
    this.#owner = owner
    this.#sender = new Sender(socket, limits, (stream) => this.#said(stream))
    this.#blocks = new HeaderBlocks(limits)
    this.#ended = new EndedStreams(limits.remembered)
    this.#in = new InWindow(limits.sessionWindowBytes)
    this.#chatter = new Bucket(limits.chatter, limits.chatterPerSecond, this.#active)
    this.#turns = new Turns(socket, this.#data)
    socket.on('drain', this.#drained)
    socket.on('end', this.close).on('error', this.close).on('close', this.close)
    this.#sender.introduce()
    socket.resume()
  }

  readonly #data = (chunk: Buffer): Buffer => {
    this.#active = performance.now()
    const until = this.#owner.turn.until()
    try {
      const rest = this.#reader.push(this.#preface.behind(chunk), (frame) => {
        this.#take(frame)
        return !this.#over && this.#fresh.length < TURN_REQUESTS && performance.now() < until
      })
      if (rest.length === 0 || this.#fresh.length >= TURN_REQUESTS) this.#serve()
      for (const stream of this.#streams.values()) stream.request.flush()
      if (this.#sender.unread) throw new Http2Fault(CODE.ENHANCE_YOUR_CALM, 'What was answered is not read')
      return rest
    } catch (error) {
      this.#fail(error)
      return NOTHING
    }
  }

  #take(frame: Frame): void {
    const { type, stream, payload } = frame
    if (!this.#settled && type !== TYPE.SETTINGS)
      throw new Http2Fault(CODE.PROTOCOL_ERROR, 'A connection begins with settings')
    if (this.#blocks.open !== undefined && (type !== TYPE.CONTINUATION || stream !== this.#blocks.open))
      throw new Http2Fault(CODE.PROTOCOL_ERROR, 'A header block is interrupted')
    checkFrame(frame)
    if (type === TYPE.DATA) this.#takeData(frame)
    else if (type === TYPE.HEADERS || type === TYPE.CONTINUATION) this.#takeHeaders(frame)
    else if (type === TYPE.WINDOW_UPDATE) this.#takeWindow(stream, payload.readUInt32BE(0) & 0x7fffffff)
    else if (type === TYPE.RST_STREAM) this.#takeReset(stream)
    else this.#takeOther(frame)
  }

  #takeData(frame: Frame): void {
    const { flags, stream: id, payload } = frame
    if (!this.#in.take(payload.length))
      throw new Http2Fault(CODE.FLOW_CONTROL_ERROR, 'More was sent than there is room for')
    const bytes = unpadded(frame)
    const last = (flags & FLAG.END_STREAM) !== 0
    const stream = this.#streams.get(id)
    if (stream !== undefined && !stream.heard) {
      if (bytes.length === 0 && !last) this.#chat()
      this.#takeBody(stream, payload.length, bytes, last)
      return
    }
    if (stream === undefined) this.#known(id)
    this.#chat()
    this.#sender.allow(0, this.#in.give(payload.length))
    if (stream !== undefined) this.#reset(stream, CODE.STREAM_CLOSED)
  }

  #takeBody(stream: Stream, size: number, bytes: Buffer, last: boolean): void {
    if (!stream.in.take(size)) {
      this.#sender.allow(0, this.#in.give(size))
      this.#reset(stream, CODE.FLOW_CONTROL_ERROR)
      return
    }
    this.#taken(stream, size - bytes.length)
    if (stream.said) stream.drained += size
    if (!stream.request.arrive(bytes)) {
      this.#sender.allow(0, this.#in.give(bytes.length))
      this.#reset(stream, CODE.PROTOCOL_ERROR)
    } else if (last) this.#heard(stream)
    else if (stream.drained > this.#limits.drainedBytes) this.#reset(stream, CODE.NO_ERROR)
  }

  #takeHeaders(frame: Frame): void {
    if (frame.stream % 2 === 0) throw new Http2Fault(CODE.PROTOCOL_ERROR, 'A stream that agents do not open')
    const block = this.#blocks.take(frame)
    if (block === undefined) return
    const stream = this.#streams.get(block.stream)
    if (stream !== undefined) this.#takeTrailers(stream, block.fields, block.last)
    else if (block.stream > this.#last) this.#open(block.stream, block.fields, block.last)
    else {
      this.#known(block.stream)
      this.#chat()
    }
  }

  #takeTrailers(stream: Stream, fields: Field[] | undefined, last: boolean): void {
    if (stream.heard) this.#reset(stream, CODE.STREAM_CLOSED)
    else if (!last || fields === undefined || !areTrailers(fields)) this.#reset(stream, CODE.PROTOCOL_ERROR)
    else this.#heard(stream)
  }

  #open(id: number, fields: Field[] | undefined, last: boolean): void {
    this.#last = id
    const { streams, streamsInAll } = this.#limits
    if (this.#streams.size >= streams || this.#owner.all.streams >= streamsInAll) {
      this.#chat()
      this.#end(id, CODE.REFUSED_STREAM)
      return
    }
    const asked = fields === undefined ? undefined : requestOf(fields, last)
    if (typeof asked === 'string') {
      this.#owner.denied(new NetworkDenied(400, 'bad-request', `The request is malformed: ${asked}`))
      this.#chat()
      this.#end(id, CODE.PROTOCOL_ERROR)
      return
    }
    const stream = this.#make(id, asked ?? NO_REQUEST, fields ?? [], last)
    this.#streams.set(id, stream)
    this.#owner.all.streams++
    const denied = refusalOf(asked)
    if (denied === undefined) this.#fresh.push(stream)
    else {
      stream.request.discard()
      this.#owner.refuse(denied, stream.answer)
    }
  }

  #make(id: number, asked: RequestFields, fields: Field[], last: boolean): Stream {
    const { streamWindowBytes, requestMs } = this.#limits
    const sender = this.#sender
    const stream: Stream = {
      id,
      request: new Http2Request(asked, fields, arrivalOf(this.#socket), !last, (bytes) =>
        this.#taken(stream, bytes),
      ),
      answer: new Http2Answer(
        {
          get full() {
            return sender.full
          },
          headers: (head, end) => {
            if (this.#streams.get(id) === stream) sender.headers(stream, head, end)
          },
          waiting: () => this.#send(stream),
          cut: () => this.#reset(stream, CODE.INTERNAL_ERROR),
        },
        asked,
      ),
      in: new InWindow(streamWindowBytes),
      out: new OutWindow(this.#outFirst),
      until: performance.now() + requestMs,
      heard: last,
      said: false,
      drained: 0,
    }
    return stream
  }

  /** Events that come once in a while are no silence, though the agent says nothing. */
  #send(stream: Stream): void {
    this.#active = performance.now()
    this.#sender.send(stream)
  }

  #serve(): void {
    for (const stream of this.#fresh.splice(0)) {
      if (this.#streams.get(stream.id) !== stream) continue
      stream.request.settle()
      this.#owner.serve(stream.request, stream.answer)
    }
  }

  /** Bytes of a body are nobody's any more. */
  #taken(stream: Stream, bytes: number): void {
    if (bytes === 0 || this.#over) return
    this.#active = performance.now()
    this.#sender.allow(0, this.#in.give(bytes))
    if (!stream.heard && this.#streams.get(stream.id) === stream)
      this.#sender.allow(stream.id, stream.in.give(bytes))
  }

  #heard(stream: Stream): void {
    stream.heard = true
    if (!stream.request.finish()) this.#reset(stream, CODE.PROTOCOL_ERROR)
    else if (stream.said) this.#forget(stream)
  }

  #said(stream: Stream): void {
    this.#active = performance.now()
    stream.said = true
    if (stream.heard) this.#forget(stream)
    // Whoever answered has read what it wanted, and what nobody reads would take room from all the others.
    else stream.request.discard()
  }

  #reset(stream: Stream, code: Code): void {
    if (this.#streams.get(stream.id) !== stream) return
    this.#forget(stream)
    this.#end(stream.id, code)
    // What the agent did wrong is counted; what this end cuts off is not its fault.
    if (code !== CODE.INTERNAL_ERROR && code !== CODE.NO_ERROR) this.#chat()
  }

  #end(id: number, code: Code): void {
    if (this.#over) return
    this.#ended.add(id)
    this.#sender.reset(id, code)
  }

  #forget(stream: Stream): void {
    if (!this.#streams.delete(stream.id)) return
    this.#owner.all.streams--
    this.#sender.forget(stream)
    stream.request.break(new Error('The agent went away'))
    stream.answer.leave()
    if (this.#leaving && this.#streams.size === 0) this.#leave(CODE.NO_ERROR)
  }

  #opened(id: number): void {
    if (id % 2 === 0 || id > this.#last)
      throw new Http2Fault(CODE.PROTOCOL_ERROR, 'A stream that was never opened')
  }

  /** A stream that is no more: the agent may not know it yet, or ought to. */
  #known(id: number): void {
    this.#opened(id)
    if (!this.#ended.has(id)) throw new Http2Fault(CODE.STREAM_CLOSED, 'A stream that has ended')
  }

  #takeReset(id: number): void {
    this.#opened(id)
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    this.#forget(stream)
    // Opening it has cost the gate more than the agent.
    this.#chat()
  }

  #takeWindow(id: number, more: number): void {
    if (id > 0) this.#opened(id)
    const stream = this.#streams.get(id)
    if (id > 0 && stream === undefined) return
    const code = more === 0 ? CODE.PROTOCOL_ERROR : CODE.FLOW_CONTROL_ERROR
    if (more > 0 && this.#sender.grow(stream, more)) return
    if (stream === undefined) throw new Http2Fault(code, 'A window that cannot be')
    this.#reset(stream, code)
  }

  /** What asks for nothing, or next to nothing. Kinds that nobody knows are let pass. */
  #takeOther({ type, flags, payload }: Frame): void {
    this.#chat()
    if (type === TYPE.GOAWAY) this.#goodbye(payload)
    else if ((flags & FLAG.ACK) !== 0) return
    else if (type === TYPE.PING) this.#sender.frame(TYPE.PING, FLAG.ACK, 0, payload)
    else if (type === TYPE.SETTINGS) this.#takeSettings(payload)
  }

  /** It asks for nothing more. What it complains of cannot be mended. */
  #goodbye(payload: Buffer): void {
    this.#leaving = true
    if (payload.length < 8 || payload.readUInt32BE(4) !== CODE.NO_ERROR) this.close()
    else if (this.#streams.size === 0) this.#leave(CODE.NO_ERROR)
  }

  #takeSettings(settings: Buffer): void {
    const first = initialWindowIn(settings, this.#outFirst)
    const more = first - this.#outFirst
    this.#settled = true
    this.#outFirst = first
    this.#sender.frame(TYPE.SETTINGS, FLAG.ACK, 0, NOTHING)
    if (more !== 0) this.#sender.growAll([...this.#streams.values()], more)
  }

  /** Each of these is cheap, and a hundred thousand in a second are not. */
  #chat(): void {
    if (!this.#chatter.take(performance.now()))
      throw new Http2Fault(CODE.ENHANCE_YOUR_CALM, 'Too many frames that ask for nothing')
  }

  readonly #drained = (): void => {
    this.#active = performance.now()
    this.#sender.pump()
    for (const stream of [...this.#streams.values()]) stream.answer.drained()
  }

  /** Ends what nobody waits for any longer. */
  tick(now: number): void {
    const { keepAliveMs, headersMs, requestMs } = this.#limits
    const quiet = now - this.#active
    const begun = this.#settled && this.#blocks.open === undefined
    if (this.#streams.size === 0 && quiet > (begun ? keepAliveMs : headersMs)) this.#leave(CODE.NO_ERROR)
    else if (quiet > requestMs) this.close()
    else
      for (const stream of [...this.#streams.values()])
        if (!stream.heard && now > stream.until) this.#tooSlow(stream)
  }

  #tooSlow(stream: Stream): void {
    if (stream.said) this.#reset(stream, CODE.NO_ERROR)
    else stream.request.break(new NetworkDenied(408, 'too-slow', 'The request came too slowly'))
  }

  #fail(error: unknown): void {
    const fault = error instanceof Http2Fault ? error : undefined
    const why = fault === undefined ? 'The gate failed' : `The connection is refused: ${fault.message}`
    if (!this.#over) this.#owner.denied(endOf(fault?.code === CODE.ENHANCE_YOUR_CALM, why, error))
    this.#leave(fault?.code ?? CODE.INTERNAL_ERROR)
  }

  /** Says why, and goes. */
  #leave(code: Code): void {
    if (this.#over) return
    this.#sender.leave(this.#last, code)
    this.#abandon()
    this.#socket.end()
    // An agent that reads nothing would hold the connection open.
    const cut = setTimeout(() => this.#socket.destroy(), LEAVING_MS)
    this.#socket.once('close', () => clearTimeout(cut))
    this.#socket.resume()
  }

  readonly close = (): void => {
    this.#abandon()
    this.#socket.destroy()
  }

  #abandon(): void {
    if (this.#over) return
    this.#over = true
    this.#turns.end()
    this.#socket.off('drain', this.#drained)
    for (const stream of [...this.#streams.values()]) this.#forget(stream)
    this.#fresh.length = 0
    this.#owner.closed(this)
  }
}

const LEAVING_MS = 1_000
const NOTHING = Buffer.alloc(0)
