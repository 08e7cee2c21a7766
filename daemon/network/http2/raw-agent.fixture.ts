import { createServer, connect as dial, type Socket } from 'node:net'
import { expect } from 'vitest'
import type { AgentRequest, AgentResponse } from '../agent-request.ts'
import type { NetworkDenied } from '../denial.ts'
import { Http2Agents } from '../http2-agent.ts'
import { LIMITS } from '../limits.ts'
import type { Http2Limits } from './ceilings.ts'
import { type Frame, FrameReader, frame, TYPE } from './frames.ts'

/** `:method GET`, `:scheme https`, `:path /`, `:authority a`; and the same with POST. */
export const GET = Buffer.from('828784010161', 'hex')
export const POST = Buffer.from('838784010161', 'hex')
export const NOTHING = Buffer.alloc(0)
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** A field written without the table and without packing. */
export function literal(name: string, value: string): Buffer {
  const text = (one: string): Buffer => {
    if (one.length < 127) return Buffer.concat([Buffer.from([one.length]), Buffer.from(one, 'latin1')])
    const rest = one.length - 127
    const length = [
      0x7f,
      (rest % 128) | 0x80,
      (Math.floor(rest / 128) % 128) | 0x80,
      Math.floor(rest / 16_384),
    ]
    return Buffer.concat([Buffer.from(length), Buffer.from(one, 'latin1')])
  }
  return Buffer.concat([Buffer.from([0]), text(name), text(value)])
}

/** An agent that says what a test tells it to, byte by byte, and the gate's end of its connection. */
export class RawAgent {
  readonly frames: Frame[] = []
  readonly denied: NetworkDenied[] = []
  readonly served: { readonly from: AgentRequest; readonly to: AgentResponse }[] = []
  readonly agents: Http2Agents
  readonly socket: Socket
  closed = false
  readonly #close: () => void

  private constructor(socket: Socket, agents: Http2Agents, close: () => void) {
    this.socket = socket
    this.agents = agents
    this.#close = close
  }

  static async open(
    serve: (from: AgentRequest, to: AgentResponse) => void = () => undefined,
    limits: Partial<Http2Limits> = {},
  ): Promise<RawAgent> {
    let self: RawAgent | undefined
    const agents = new Http2Agents(
      { ...LIMITS, ...limits },
      {
        serve: (from, to) => {
          self?.served.push({ from, to })
          serve(from, to)
        },
        denied: (_subject, denied) => void self?.denied.push(denied),
      },
    )
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => agents.take(socket))
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const socket = dial((server.address() as { port: number }).port, '127.0.0.1')
    self = new RawAgent(socket, agents, () => server.close())
    self.#listen()
    return self
  }

  #listen(): void {
    const reader = new FrameReader()
    this.socket.on('data', (bytes) =>
      reader.push(bytes, (one) => this.frames.push({ ...one, payload: Buffer.from(one.payload) }) > 0),
    )
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.closed = true
    })
  }

  /** The preface and empty settings, and then these. */
  greet(...frames: Buffer[]): this {
    return this.send(PREFACE, frame(TYPE.SETTINGS, 0, 0, NOTHING), ...frames)
  }

  send(...frames: Buffer[]): this {
    this.socket.write(Buffer.concat(frames))
    return this
  }

  of(type: number, stream?: number): Frame[] {
    return this.frames.filter((one) => one.type === type && (stream === undefined || one.stream === stream))
  }

  /** The code that its connection was ended with. */
  get goaway(): number | undefined {
    return this.of(TYPE.GOAWAY)[0]?.payload.readUInt32BE(4)
  }

  /** The code that a stream was ended with. */
  reset(stream: number): number | undefined {
    return this.of(TYPE.RST_STREAM, stream)[0]?.payload.readUInt32BE(0)
  }

  /** What came of a body, and whether it is whole. */
  body(stream: number): { readonly bytes: Buffer; readonly ended: boolean } {
    const all = this.of(TYPE.DATA, stream)
    const last = [...all, ...this.of(TYPE.HEADERS, stream)].some((one) => (one.flags & 1) === 1)
    return { bytes: Buffer.concat(all.map((one) => one.payload)), ended: last }
  }

  close(): void {
    this.agents.close()
    this.socket.destroy()
    this.#close()
  }
}

/** Sooner or later. */
export const until = (is: () => boolean): Promise<void> =>
  expect.poll(is, { timeout: 10_000, interval: 5 }).toBe(true)
/** Flags: 1 the end of the stream, 4 the end of the headers. */
export const get = (stream: number, flags = 5): Buffer => frame(TYPE.HEADERS, flags, stream, GET)
export const post = (stream: number, ...more: Buffer[]): Buffer =>
  frame(TYPE.HEADERS, 4, stream, Buffer.concat([POST, ...more]))
export const data = (stream: number, bytes: Buffer | string, end = false): Buffer =>
  frame(TYPE.DATA, end ? 1 : 0, stream, Buffer.from(bytes))
export const setting = (name: number, value: number): Buffer => {
  const bytes = Buffer.alloc(6)
  bytes.writeUInt16BE(name)
  bytes.writeUInt32BE(value, 2)
  return bytes
}
export const say = (
  to: AgentResponse,
  body: string | Buffer,
  headers: readonly (readonly [string, string])[] = [],
): void => {
  to.head(200, headers)
  to.write(Buffer.from(body))
  to.end()
}
