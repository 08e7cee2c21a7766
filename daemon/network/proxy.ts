import { createServer, type Server, type Socket } from 'node:net'
import { parseAddress, unmapped } from './address.ts'
import type { AgentRequest, AgentResponse } from './agent-request.ts'
import { connectTunnel, refuseRaw } from './connect.ts'
import { NetworkDenied } from './denial.ts'
import type { Arrival, Gate } from './gate.ts'
import { Http1Agent, type Http1Owner } from './http1-agent.ts'
import { Http2Agents } from './http2-agent.ts'
import { type Parsers, takeIn } from './intake.ts'
import { listenOn } from './listen-on.ts'
import { serve } from './serve.ts'
import { upgradeWebSocket } from './upgrade.ts'

/** Headers and body are two writes at times; Nagle would hold the second one back for 40 ms. */
const SOCKETS = { allowHalfOpen: true, noDelay: true }

/** The proxy of one branch: its listening sockets, its parsers, its connections. It shares none of them with another. */
export class BranchProxy {
  readonly #gate: Gate
  readonly #http1 = new Set<Http1Agent>()
  readonly #http2: Http2Agents
  readonly #listeners: Server[] = []
  readonly #sockets = new Set<Socket>()
  readonly #clock: NodeJS.Timeout
  #requests = 0
  readonly #owner: Http1Owner = {
    serve: (from, to) => void this.#serve(from, to),
    connect: (asked, socket, rest) =>
      void connectTunnel(this.#gate, this.#parsers, asked.target, socket, rest),
    upgrade: (asked, socket, rest) => void upgradeWebSocket(this.#gate, asked, socket, rest),
    malformed: (denied, socket) => this.#malformed(denied, socket),
    closed: (connection) => void this.#http1.delete(connection),
  }
  readonly #parsers: Parsers = {
    http1: (socket) => void this.#http1.add(new Http1Agent(socket, this.#gate.limits, this.#owner)),
    http2: (socket) => this.#http2.take(socket),
  }

  constructor(gate: Gate) {
    this.#gate = gate
    const { limits } = gate
    this.#http2 = new Http2Agents(limits, {
      serve: (from, to) => void this.#serve(from, to),
      denied: (subject, denied) => gate.denied(subject, denied),
    })
    // One clock for all of them: a timer per request would cost more than the rest of it.
    this.#clock = setInterval(
      () => {
        const now = performance.now()
        for (const connection of [...this.#http1]) connection.tick(now)
        this.#http2.tick(now)
      },
      Math.min(5_000, limits.headersMs / 3),
    ).unref()
  }

  /** Takes descriptors of listening sockets inside the branch's namespace, at once; `close` closes them. */
  async listen(
    explicit: number,
    transparent: readonly { readonly port: number; readonly fd: number }[],
  ): Promise<void> {
    const gate = this.#gate
    const all = [
      this.#listenOn(explicit, (socket) => this.#parsers.http1(socket)),
      ...transparent.map(({ port, fd }) =>
        this.#listenOn(
          fd,
          (socket) => void takeIn(gate, this.#parsers, socket, arrivalAt(gate, socket, port)),
        ),
      ),
    ]
    await Promise.all(all)
  }

  #listenOn(fd: number, take: (socket: Socket) => void): Promise<void> {
    const server = createServer(SOCKETS, (socket) => {
      if (this.#admit(socket)) take(socket)
    })
    this.#listeners.push(server)
    return listenOn(server, fd)
  }

  /** Connections are counted; what is over the limit is closed at once. */
  #admit(socket: Socket): boolean {
    if (this.#sockets.size >= this.#gate.limits.connections) {
      this.#gate.denied(
        'connection',
        new NetworkDenied(503, 'too-many-connections', 'Too many open connections'),
      )
      socket.destroy()
      return false
    }
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    return true
  }

  async #serve(from: AgentRequest, to: AgentResponse): Promise<void> {
    if (this.#requests >= this.#gate.limits.requests) {
      const denied = new NetworkDenied(503, 'too-many-requests', 'Too many requests in work', {
        retryAfter: 1,
      })
      this.#gate.denied('request', denied)
      to.last()
      to.head(503, [
        ['retry-after', '1'],
        ['content-length', '0'],
      ])
      to.end()
      return
    }
    this.#requests++
    try {
      await serve(this.#gate, from, to)
    } catch {
      // Not even the refusal could be written: there is nobody to tell.
      to.destroy()
    } finally {
      this.#requests--
    }
  }

  #malformed(denied: NetworkDenied, socket: Socket): void {
    this.#gate.denied('malformed request', denied)
    if (socket.destroyed || !socket.writable) socket.destroy()
    else refuseRaw(socket, denied)
  }

  async close(): Promise<void> {
    clearInterval(this.#clock)
    this.#http2.close()
    for (const socket of this.#sockets) socket.destroy()
    const servers = this.#listeners.filter((server) => server.listening)
    await Promise.all(servers.map((server) => new Promise<void>((done) => server.close(() => done()))))
  }
}

/** Where a transparent connection wanted to go: its local address, which is a name's or was written by hand. */
function arrivalAt(gate: Gate, socket: Socket, port: number): Arrival {
  const address = parseAddress(socket.localAddress ?? '')
  const plain = address === undefined ? undefined : unmapped(address)
  const host = plain === undefined ? undefined : gate.names.nameOf(plain)
  return { via: 'transparent', port, host, tls: false, sni: undefined }
}
