import { chmod, chown, mkdir, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { AgentSession } from '../contract/engine.ts'

/** What a late reader still gets to see; enough to redraw a screen. */
const SCROLLBACK = 64 << 10

/**
 * A unix socket in front of one agent's terminal or pipes: what the agent prints goes to everybody who is connected,
 * what anybody types goes to the agent. Only the owner of the branch (and root) can open it.
 */
export class SessionSocket {
  readonly #path: string
  readonly #server: Server
  readonly #clients = new Set<Socket>()
  #recent: Buffer[] = []
  #recentBytes = 0

  private constructor(path: string, session: AgentSession) {
    this.#path = path
    this.#server = createServer((client) => this.#attach(client, session))
    for (const stream of [session.output, session.errors])
      stream?.on('data', (bytes: Buffer) => this.#send(bytes))
    // A terminal's master reads EIO when its last slave is closed: the end of the agent is told by `exited`.
    for (const stream of [session.output, session.errors]) stream?.on('error', () => undefined)
  }

  static async open(directory: string, session: AgentSession, owner: number): Promise<SessionSocket> {
    await mkdir(directory, { recursive: true, mode: 0o711 })
    const path = join(directory, session.id)
    await rm(path, { force: true })
    const socket = new SessionSocket(path, session)
    await new Promise<void>((resolve, reject) => {
      socket.#server.once('error', reject)
      socket.#server.listen(path, resolve)
    })
    await chmod(path, 0o600)
    await chown(path, owner, -1 >>> 0)
    return socket
  }

  get path(): string {
    return this.#path
  }

  /** Lets clients read what is left, then closes. */
  async close(): Promise<void> {
    for (const client of this.#clients) client.end()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
    await rm(this.#path, { force: true })
  }

  #attach(client: Socket, session: AgentSession): void {
    this.#clients.add(client)
    for (const bytes of this.#recent) client.write(bytes)
    client.on('data', (bytes: Buffer) => session.input?.write(bytes))
    client.on('close', () => this.#clients.delete(client))
    client.on('error', () => client.destroy())
  }

  #send(bytes: Buffer): void {
    this.#recent.push(bytes)
    this.#recentBytes += bytes.length
    while (this.#recentBytes > SCROLLBACK && this.#recent.length > 1)
      this.#recentBytes -= this.#recent.shift()?.length ?? 0
    for (const client of this.#clients) client.write(bytes)
  }
}
