import { createServer, type Server as HttpServer, type IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2'
import { createServer as createNetServer, type Server, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { parseAddress, unmapped } from './address.ts'
import { type AgentRequest, type AgentResponse, hasBody } from './arriving.ts'
import { connectTunnel, refuseRaw } from './connect.ts'
import { NetworkDenied } from './denial.ts'
import type { Arrival, Gate } from './gate.ts'
import { type Parsers, takeIn } from './intake.ts'
import { listenOn } from './listen-on.ts'
import { serve } from './serve.ts'
import { isWebSocket, upgradeWebSocket } from './upgrade.ts'

/** The proxy of one branch: its listening sockets, its parsers, its connections. It shares none of them with another. */
export class BranchProxy {
  readonly #gate: Gate
  readonly #http1: HttpServer
  readonly #http2: Http2Server
  readonly #listeners: Server[] = []
  readonly #sockets = new Set<Duplex>()
  readonly #sessions = new Set<ServerHttp2Session>()
  /** TLS over a connection that was admitted: not one more. */
  readonly #inner = new WeakSet<Duplex>()
  #requests = 0
  readonly #parsers: Parsers = {
    http1: (socket) => {
      this.#inner.add(socket)
      this.#http1.emit('connection', socket)
    },
    http2: (socket) => void this.#http2.emit('connection', socket),
  }

  constructor(gate: Gate) {
    this.#gate = gate
    this.#http1 = this.#makeHttp1()
    this.#http2 = this.#makeHttp2()
  }

  /** Takes descriptors of listening sockets inside the branch's namespace, at once; `close` closes them. */
  async listen(
    explicit: number,
    transparent: readonly { readonly port: number; readonly fd: number }[],
  ): Promise<void> {
    const listening = transparent.map(({ port, fd }) => {
      // Half open: a client that has said everything still wants its answer.
      const server = createNetServer({ allowHalfOpen: true }, (socket) => {
        if (this.#admit(socket))
          void takeIn(this.#gate, this.#parsers, socket, arrivalAt(this.#gate, socket, port))
      })
      this.#listeners.push(server)
      return listenOn(server, fd)
    })
    await Promise.all([listenOn(this.#http1, explicit), ...listening])
  }

  #makeHttp1(): HttpServer {
    const { limits } = this.#gate
    const server = createServer({
      insecureHTTPParser: false,
      requireHostHeader: true,
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(5_000, limits.headersMs / 3),
      noDelay: true,
    })
    server.maxHeadersCount = limits.headerCount
    server.on('connection', (socket: Socket) => this.#admit(socket))
    server.on('request', (from, to) => void this.#serve(from, to, () => undefined))
    server.on(
      'checkContinue',
      (from: IncomingMessage, to: ServerResponse) => void this.#serve(from, to, () => to.writeContinue()),
    )
    server.on('checkExpectation', (_from, to: ServerResponse) => to.writeHead(417).end())
    server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (socket instanceof Socket) void connectTunnel(this.#gate, this.#parsers, request, socket, head)
      else socket.destroy()
    })
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
    )
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => this.#malformed(error, socket))
    return server
  }

  #makeHttp2(): Http2Server {
    const { limits } = this.#gate
    const server = createHttp2Server({
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
    server.on('session', (session) => {
      if (this.#sessions.size >= limits.sessions) {
        const why = 'Too many HTTP/2 connections'
        this.#gate.denied('connection', new NetworkDenied(503, 'too-many-connections', why))
        session.on('error', () => undefined)
        session.destroy()
        return
      }
      this.#sessions.add(session)
      session.setLocalWindowSize(limits.sessionWindowBytes)
      session.once('close', () => this.#sessions.delete(session))
      session.on('error', () => session.destroy())
      session.setTimeout(limits.requestMs, () => session.close())
    })
    server.on(
      'request',
      (from, to) => void this.#serve(from, to as unknown as AgentResponse, () => undefined),
    )
    server.on(
      'checkContinue',
      (from, to) => void this.#serve(from, to as unknown as AgentResponse, () => to.writeContinue()),
    )
    return server
  }

  /** Connections are counted; what is over the limit is closed at once. */
  #admit(socket: Duplex): boolean {
    if (this.#sockets.has(socket) || this.#inner.has(socket)) return true
    if (this.#sockets.size >= this.#gate.limits.connections) {
      this.#gate.denied(
        'connection',
        new NetworkDenied(503, 'too-many-connections', 'Too many open connections'),
      )
      socket.destroy()
      return false
    }
    this.#sockets.add(socket)
    // Headers and body are two writes; Nagle would hold the second one back for 40 ms.
    if (socket instanceof Socket) socket.setNoDelay(true)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    return true
  }

  async #serve(from: AgentRequest, to: AgentResponse, proceed: () => void): Promise<void> {
    // An answer to somebody who went away fails quietly; the close event ends the work for it.
    to.on('error', () => undefined)
    if (this.#requests >= this.#gate.limits.requests) {
      const denied = new NetworkDenied(503, 'too-many-requests', 'Too many requests in work', {
        retryAfter: 1,
      })
      this.#gate.denied('request', denied)
      const close = from.httpVersionMajor < 2 ? { connection: 'close' } : {}
      to.writeHead(503, { 'retry-after': '1', ...close }).end()
      return
    }
    this.#requests++
    try {
      await serve(this.#gate, from, to, proceed)
    } catch {
      // Not even the refusal could be written: there is nobody to tell.
      to.destroy()
    } finally {
      this.#requests--
    }
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // The parser let go of the connection, so a body could not be told from what comes after it.
    if (request.method !== 'GET' || hasBody(request)) {
      socket.on('error', () => socket.destroy())
      const denied = new NetworkDenied(400, 'bad-upgrade', 'Only a GET without a body can be upgraded')
      this.#gate.denied('upgrade', denied)
      refuseRaw(socket, denied)
      return
    }
    if (isWebSocket(request)) {
      void upgradeWebSocket(this.#gate, request, socket, head)
      return
    }
    // Any other offer (h2c) may be ignored by a server, and is: the request goes on without it.
    request.rawHeaders = withoutUpgrade(request.rawHeaders)
    delete request.headers.upgrade
    const answer = new ServerResponse(request)
    answer.shouldKeepAlive = false
    answer.assignSocket(socket as Socket)
    answer.once('finish', () => socket.end())
    void this.#serve(request, answer, () => undefined)
  }

  #malformed(error: NodeJS.ErrnoException, socket: Duplex): void {
    const denied = parseFailure(error.code ?? '')
    if (denied === undefined || socket.destroyed || !socket.writable) {
      socket.destroy()
      return
    }
    this.#gate.denied('malformed request', denied)
    refuseRaw(socket, denied)
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
    const servers = [this.#http1, ...this.#listeners].filter((server) => server.listening)
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

function withoutUpgrade(raw: readonly string[]): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (raw[at]?.toLowerCase() !== 'upgrade') kept.push(raw[at] ?? '', raw[at + 1] ?? '')
  return kept
}

function parseFailure(code: string): NetworkDenied | undefined {
  if (code === 'ECONNRESET' || code === 'EPIPE') return undefined
  if (code === 'HPE_HEADER_OVERFLOW')
    return new NetworkDenied(431, 'headers-too-large', 'The headers are too large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new NetworkDenied(408, 'too-slow', 'The request came too slowly')
  return new NetworkDenied(400, 'bad-framing', `The request is not strict HTTP/1.1: ${code}`)
}
