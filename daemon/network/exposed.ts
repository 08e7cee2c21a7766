import { createServer, type Server, type Socket } from 'node:net'
import type { NetworkProfile } from '../contract/profile.ts'
import type { SocketPlace } from '../kernel/netns.ts'
import { PuzzledError } from '../lib/errors.ts'
import { parseCidr } from './address.ts'
import { NetworkDenied } from './denial.ts'
import type { Gate } from './gate.ts'
import { type Hostname, parseHostname } from './hostname.ts'
import { listenOn } from './listen-on.ts'
import type { NameBook } from './name-book.ts'
import { splice } from './splice.ts'

export interface Exposed {
  /** Where the bytes go. */
  readonly host: Hostname
  /** Where they are taken inside the branch. */
  readonly place: SocketPlace
}

/** A port of this host appears on the agent's loopback; one of another host at that host's synthetic address. */
export function exposedPlaces(expose: NetworkProfile['expose'], names: NameBook): readonly Exposed[] {
  return expose.map(({ host: text, port }) => {
    const local = text === 'localhost'
    const parsed = parseHostname(local ? '127.0.0.1' : text)
    const given = parsed.ok && !local ? names.assign(parsed.host)?.v4 : undefined
    if (!parsed.ok || (!local && given === undefined))
      throw new PuzzledError('profile-invalid', `Cannot expose "${text}:${port}": it is not a plain host`)
    const address = Uint8Array.from(given?.bytes ?? [127, 0, 0, 1])
    return { host: parsed.host, place: { family: 4, address, port } }
  })
}

/** The operator named the place, hence private addresses are fine; metadata services are not even then. */
const ANYWHERE = ['0.0.0.0/0', '::/0'].map(parseCidr).filter((cidr) => cidr !== undefined)

/** Carries raw bytes between ports of the branch and the places that the profile exposes. */
export class ExposedPorts {
  readonly #gate: Gate
  readonly #servers: Server[] = []
  readonly #sockets = new Set<Socket>()

  constructor(gate: Gate) {
    this.#gate = gate
  }

  /** `fds` are listening sockets inside the branch, in the order of `exposed`. */
  async listen(exposed: readonly Exposed[], fds: readonly number[]): Promise<void> {
    const listening = fds.map((fd, at) => {
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        const target = exposed[at]
        if (target === undefined) socket.destroy()
        else this.#carry(socket, target)
      })
      this.#servers.push(server)
      return listenOn(server, fd)
    })
    await Promise.all(listening)
  }

  #carry(socket: Socket, { host, place }: Exposed): void {
    if (this.#sockets.size >= this.#gate.limits.connections) {
      const denied = new NetworkDenied(503, 'too-many-connections', 'Too many open connections')
      this.#gate.denied(`exposed ${host.text}:${place.port}`, denied)
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    this.#gate.upstream.connect({ scheme: 'http', host, port: place.port, allowed: ANYWHERE }).then(
      (upstream) => {
        if (socket.destroyed) upstream.destroy()
        else splice(this.#gate, socket, upstream, undefined, host.text)
      },
      () => socket.resetAndDestroy(),
    )
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(this.#servers.map((server) => new Promise<void>((done) => server.close(() => done()))))
  }
}
