import { join } from 'node:path'
import type { AgentSession, CommandSession } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type Offered, SessionSocket } from './session-socket.ts'

/** A caller that has gone hung up, as a terminal does; what does not end by that is asked, then made, to end. */
const AFTER_HANGUP = ['HUP', 'TERM'] as const

interface OpenSession {
  readonly session: AgentSession
  readonly socket: SessionSocket
  readonly terminal: boolean
}

/** The sockets of everything that runs in branches, in one directory. */
export class Sessions {
  readonly #directory: string
  readonly #admits: Offered['admits']
  readonly #report: (error: unknown) => void
  readonly #agents = new Map<string, OpenSession>()
  readonly #sockets = new Set<SessionSocket>()
  #commands = 0

  constructor(directory: string, admits: Offered['admits'], report: (error: unknown) => void) {
    this.#directory = directory
    this.#admits = admits
    this.#report = report
  }

  /** The path of the agent's socket; empty when its descriptors are its caller's and there is nothing to attach to. */
  async offerAgent(session: AgentSession, owner: number, terminal: boolean): Promise<string> {
    if (session.output === undefined && session.errors === undefined) return ''
    const socket = await SessionSocket.open(join(this.#directory, session.id), {
      session,
      owner,
      admits: this.#admits,
      report: this.#report,
    })
    this.#agents.set(session.id, { session, socket, terminal })
    this.#keep(socket, session.exited, () => this.#agents.delete(session.id))
    return socket.path
  }

  async offerCommand(branch: string, session: CommandSession, owner: number): Promise<string> {
    const path = join(this.#directory, `${branch}.${++this.#commands}`)
    const command = {
      signal: (name: string) => session.signal(name),
      abandoned: async () => {
        for (const name of AFTER_HANGUP) await session.signal(name)
      },
    }
    try {
      const socket = await SessionSocket.open(path, {
        ...{ session, owner, command },
        admits: this.#admits,
        report: this.#report,
      })
      this.#keep(socket, session.exited, () => undefined)
      return socket.path
    } catch (error) {
      // Nobody will ever be told of it.
      await session.signal('KILL')
      throw error
    }
  }

  attach(id: string): { path: string; terminal: boolean } {
    const open = this.#agents.get(id)
    if (open === undefined)
      throw new PuzzledError('wrong-state', `There is nothing of branch ${id} to attach to`, {
        hint: `Its agent has ended or writes to its caller's own files. What it wrote: puzzlectl logs ${id}`,
      })
    return { path: open.socket.path, terminal: open.terminal }
  }

  resize(id: string, columns: number, rows: number): void {
    this.#agents.get(id)?.session.resize(columns, rows)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => socket.close()))
  }

  #keep(socket: SessionSocket, exited: Promise<unknown>, ended: () => void): void {
    this.#sockets.add(socket)
    exited.then(ended, ended)
    // It outlives what ran, until the caller has been told of the end.
    void socket.over.then(() => this.#sockets.delete(socket))
  }
}
