import { createServer, type Server, type Socket } from 'node:net'
import type { NetworkProfile } from '../contract/profile.ts'
import type { SocketPlace } from '../kernel/netns.ts'
import { PuzzledError } from '../lib/errors.ts'
import { parseCidr } from './address.ts'
import type { Gate } from './gate.ts'
import { type Hostname, parseHostname } from './hostname.ts'
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
    for (const [at, fd] of fds.entries()) {
      const target = exposed[at]
      if (target === undefined) throw new PuzzledError('internal', 'A listening socket has no exposed place')
      const server = createServer((socket) => this.#carry(socket, target))
      this.#servers.push(server)
      await new Promise<void>((ready) => server.listen({ fd, exclusive: true }, ready))
    }
  }

  #carry(socket: Socket, { host, place }: Exposed): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    this.#gate.upstream.connect({ scheme: 'http', host, port: place.port, allowed: ANYWHERE }).then(
      (upstream) => splice(this.#gate, socket, upstream, undefined, host.text),
      () => socket.resetAndDestroy(),
    )
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(this.#servers.map((server) => new Promise<void>((done) => server.close(() => done()))))
  }
}
