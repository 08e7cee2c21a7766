import { chmod, chown, mkdtemp, rename, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { ListenOptions, Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { UndoStack } from '../lib/undo.ts'

export interface EndpointOptions {
  /** Path of the unix socket; its directory exists. */
  socket: string
  /** Who besides root may read; null for nobody. */
  gid: number | null
  /** A TCP port of the loopback as well, for collectors that know nothing else; null for none. */
  port: number | null
  /** Whether whoever connected may ask: what runs in a branch may have the rights to the file. */
  admits?: (socket: Socket) => Promise<boolean>
  /** Called with the server of the socket while nobody can reach it yet. */
  prepare?: (server: Server) => void
}

type Admits = NonNullable<EndpointOptions['admits']>

const TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
/** Collectors are few. Whoever opens more is cut off, not served later. */
const MOST_CONNECTIONS = 16

/** `GET /metrics` over HTTP/1.1, for people and programs on this machine only. */
export class MetricsEndpoint {
  readonly #undo: UndoStack

  private constructor(undo: UndoStack) {
    this.#undo = undo
  }

  static async open(options: EndpointOptions, text: () => string): Promise<MetricsEndpoint> {
    const undo = new UndoStack()
    try {
      await serveSocket(options, text, undo)
      if (options.port !== null)
        await listen(newServer(text, undo, options.admits), { host: '127.0.0.1', port: options.port })
    } catch (error) {
      await undo.unwind()
      throw error
    }
    return new MetricsEndpoint(undo)
  }

  close(): Promise<void> {
    return this.#undo.unwind()
  }
}

/** Bound where nobody can reach it and moved to its name with its rights: there is no moment of wrong rights. */
async function serveSocket(
  { socket, gid, admits, prepare }: EndpointOptions,
  text: () => string,
  undo: UndoStack,
): Promise<void> {
  const room = await mkdtemp(join(dirname(socket), '.metrics-'))
  try {
    const bound = join(room, 'socket')
    const server = newServer(text, undo, admits)
    await listen(server, { path: bound })
    prepare?.(server)
    if (gid !== null) await chown(bound, process.geteuid?.() ?? 0, gid)
    await chmod(bound, gid === null ? 0o600 : 0o660)
    await rename(bound, socket)
    undo.push('remove the socket of the metrics', () => rm(socket, { force: true }))
  } finally {
    await rm(room, { recursive: true, force: true })
  }
}

function newServer(text: () => string, undo: UndoStack, admits: Admits = async () => true): Server {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (request, response) => {
    admits(request.socket).then(
      (admitted) => (admitted ? answer(request, response, text) : request.socket.destroy()),
      () => request.socket.destroy(),
    )
  })
  server.maxConnections = MOST_CONNECTIONS
  undo.push('close the metrics', async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return server
}

const listen = (server: Server, where: ListenOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })

/** A web page that a browser on this machine shows may send requests to the loopback, under a name of its own. */
const HOSTS = /^(localhost|127\.0\.0\.1|\[::1\])?(:\d+)?$/

function answer(request: IncomingMessage, response: ServerResponse, text: () => string): void {
  const refused = refusal(request)
  if (refused !== null) {
    const [status, why] = refused
    response.writeHead(status, { 'content-type': 'text/plain', connection: 'close', allow: 'GET, HEAD' })
    response.end(`${why}\n`)
    return
  }
  const body = text()
  response.writeHead(200, { 'content-type': TYPE, 'content-length': Buffer.byteLength(body) })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function refusal({ headers, url, method }: IncomingMessage): [status: number, why: string] | null {
  if (!HOSTS.test(headers.host ?? '')) return [421, 'Ask for localhost']
  if (url !== '/metrics') return [404, 'There is only /metrics']
  return method === 'GET' || method === 'HEAD' ? null : [405, 'Only GET']
}
