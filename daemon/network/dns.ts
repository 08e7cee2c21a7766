import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import { parseAddress } from './address.ts'
import { answer, failure, parseQuery, type Question, RCODE, TYPE } from './dns-message.ts'
import { type Hostname, parseHostname } from './hostname.ts'
import { listenOn } from './listen-on.ts'
import type { NameBook } from './name-book.ts'
import type { NameVerdict } from './name-guard.ts'

export interface DnsParts {
  readonly names: NameBook
  check(host: Hostname): NameVerdict
  /** A name that got no answer, for the events. */
  denied(name: string, rule: string, reason: string, help?: string): void
}

/** Queries per second that are looked at; the rest get REFUSED. */
const QUERIES_PER_SECOND = 500
const MAX_TCP = 64
/** Of a query by TCP; what fits into no datagram is no query of a name. */
const MAX_MESSAGE = 1_232
/** Answers that nobody takes. */
const MAX_UNSENT = 65_536

/**
 * The name service inside a branch. It resolves nothing: an allowed name has a synthetic address that leads to the
 * gate, every other name does not exist, and so no query of the agent ever reaches a real name server.
 */
export class DnsServer {
  readonly #parts: DnsParts
  readonly #udp: UdpSocket[] = []
  readonly #tcp: Server[] = []
  readonly #connections = new Set<Socket>()
  #second = 0
  #queries = 0

  constructor(parts: DnsParts) {
    this.#parts = parts
  }

  /** Takes descriptors that were opened inside the branch's namespace, at once; `close` closes them. */
  async listen(udp: readonly { family: 4 | 6; fd: number }[], tcp: readonly number[]): Promise<void> {
    const servers = tcp.map((fd) => {
      const server = createServer((socket) => this.#serve(socket))
      this.#tcp.push(server)
      return listenOn(server, fd)
    })
    await Promise.all([...udp.map((one) => this.#bind(one)), ...servers])
  }

  #bind({ family, fd }: { family: 4 | 6; fd: number }): Promise<void> {
    const socket = createSocket(family === 4 ? 'udp4' : 'udp6', (message, from) => {
      const reply = this.#reply(message)
      // A failed send is a lost datagram; the client asks again.
      if (reply !== undefined) socket.send(reply, from.port, from.address, () => undefined)
    })
    this.#udp.push(socket)
    return new Promise((ready, failed) => {
      socket.on('error', failed)
      socket.bind({ fd, exclusive: true }, ready)
    })
  }

  /** One message at a time, each with its length in front. */
  #serve(socket: Socket): void {
    if (this.#connections.size >= MAX_TCP) {
      socket.destroy()
      return
    }
    this.#connections.add(socket)
    socket.once('close', () => this.#connections.delete(socket))
    socket.on('error', () => undefined)
    socket.setTimeout(10_000, () => socket.destroy())
    let pending = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk])
      if (pending.length >= 2 && pending.readUInt16BE(0) > MAX_MESSAGE) return void socket.destroy()
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const end = 2 + pending.readUInt16BE(0)
        const reply = this.#reply(pending.subarray(2, end))
        pending = pending.subarray(end)
        if (reply === undefined) return void socket.destroy()
        const length = Buffer.alloc(2)
        length.writeUInt16BE(reply.length)
        socket.write(Buffer.concat([length, reply]))
        if (socket.writableLength > MAX_UNSENT) return void socket.destroy()
        if (pending.length >= 2 && pending.readUInt16BE(0) > MAX_MESSAGE) return void socket.destroy()
      }
    })
  }

  #reply(message: Buffer): Buffer | undefined {
    const parsed = parseQuery(message)
    if (!parsed.ok) return parsed.id === undefined ? undefined : failure(parsed.id, parsed.rcode)
    const { question } = parsed
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) [this.#second, this.#queries] = [second, 0]
    if (++this.#queries > QUERIES_PER_SECOND) return answer(question, RCODE.refused)
    return this.#resolve(question)
  }

  #resolve(question: Question): Buffer {
    const { type } = question
    // Reverse lookups are a habit of programs, not a wish to go somewhere.
    if (type === TYPE.PTR || question.name.toLowerCase().endsWith('.arpa'))
      return answer(question, RCODE.noName)
    const parsed = parseHostname(question.name)
    if (!parsed.ok) return this.#deny(question, 'bad-host', `The name is refused: ${parsed.reason}`)
    const { host } = parsed
    const wanted = type === TYPE.A ? 4 : type === TYPE.AAAA ? 6 : undefined
    if (host.text === 'localhost' || host.text.endsWith('.localhost')) {
      const local = wanted === undefined ? undefined : parseAddress(wanted === 4 ? '127.0.0.1' : '::1')
      return answer(question, RCODE.ok, local === undefined ? [] : [local])
    }
    const verdict = this.#parts.check(host)
    if (!verdict.ok) return this.#deny(question, verdict.rule, verdict.reason, verdict.help)
    if (wanted === undefined) return answer(question, RCODE.ok)
    const given = this.#parts.names.assign(host)
    if (given === undefined) return answer(question, RCODE.failed)
    return answer(question, RCODE.ok, [wanted === 4 ? given.v4 : given.v6])
  }

  #deny(question: Question, rule: string, reason: string, help?: string): Buffer {
    this.#parts.denied(question.name, rule, reason, help)
    return answer(question, RCODE.noName)
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.destroy()
    await Promise.all([
      ...this.#udp.map((socket) => new Promise<void>((done) => socket.close(done))),
      ...this.#tcp.map((server) => new Promise<void>((done) => server.close(() => done()))),
    ])
  }
}
