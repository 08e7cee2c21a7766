import type { Duplex } from 'node:stream'
import { Connection, type ConnectionOwner } from './connection.ts'
import type { Call } from './exchange.ts'
import type { NetworkLimits } from './limits.ts'
import { upstreamError } from './upstream-error.ts'

/** The connections of one branch to one other end, and the requests that wait for one of them. */
export class Origin implements ConnectionOwner {
  readonly #limits: NetworkLimits
  readonly #connect: () => Promise<Duplex>
  readonly #connections = new Set<Connection>()
  /** Used last, used next: the others can end. */
  readonly #idle: Connection[] = []
  readonly #waiting: Call[] = []
  #connecting = 0
  #closed = false

  constructor(limits: NetworkLimits, connect: () => Promise<Duplex>) {
    this.#limits = limits
    this.#connect = connect
  }

  /** Nothing is under way. */
  get unused(): boolean {
    return (
      this.#connections.size === this.#idle.length && this.#connecting === 0 && this.#waiting.length === 0
    )
  }

  dispatch(call: Call): void {
    const idle = call.again ? undefined : this.#idle.pop()
    if (idle !== undefined) idle.run(call)
    else if (this.#connections.size + this.#connecting >= this.#limits.upstreamSockets)
      this.#waiting.push(call)
    else void this.#dial(call)
  }

  async #dial(call: Call): Promise<void> {
    this.#connecting++
    let socket: Duplex
    try {
      socket = await this.#connect()
    } catch (error) {
      this.#connecting--
      call.abort(upstreamError(error))
      this.#next()
      return
    }
    this.#connecting--
    if (this.#closed) {
      socket.destroy()
      call.abort(closed())
      return
    }
    const connection = new Connection(socket, this.#limits, this)
    this.#connections.add(connection)
    if (call.over) this.free(connection)
    else connection.run(call)
  }

  free(connection: Connection): void {
    const call = this.#nextCall()
    if (call !== undefined) connection.run(call)
    else this.#idle.push(connection)
  }

  gone(connection: Connection, again: Call | undefined): void {
    this.#connections.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    if (this.#closed) return
    // In the place of the one that ended, so it never waits.
    if (again !== undefined) this.dispatch(again)
    else this.#next()
  }

  /** There is room for a connection: whoever waits longest gets it. */
  #next(): void {
    const call = this.#nextCall()
    if (call !== undefined) this.dispatch(call)
  }

  #nextCall(): Call | undefined {
    while (this.#waiting[0]?.over === true) this.#waiting.shift()
    return this.#waiting.shift()
  }

  tick(now: number): void {
    for (const connection of [...this.#connections]) connection.tick(now)
  }

  close(): void {
    this.#closed = true
    for (const call of this.#waiting.splice(0)) call.abort(closed())
    for (const connection of [...this.#connections]) connection.close(closed())
  }
}

const closed = (): Error => new Error('The network of the branch is closed')
