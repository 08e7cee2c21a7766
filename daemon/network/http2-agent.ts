import type { Duplex } from 'node:stream'
import type { AgentRequest, AgentResponse } from './agent-request.ts'
import { NetworkDenied, problemBody, problemHeaders } from './denial.ts'
import { HTTP2, type Http2Limits } from './http2/ceilings.ts'
import { Http2Session } from './http2/session.ts'
import { TurnClock } from './http2/turns.ts'
import type { NetworkLimits } from './limits.ts'

export interface Http2Owner {
  serve(from: AgentRequest, to: AgentResponse): void
  denied(subject: string, denied: NetworkDenied): void
}

/** The connections of an agent that speak HTTP/2. */
export class Http2Agents {
  readonly #limits: Http2Limits
  readonly #owner: Http2Owner
  readonly #all = { streams: 0 }
  readonly #turn = new TurnClock()
  readonly #sessions = new Set<Http2Session>()

  constructor(limits: NetworkLimits & Partial<Http2Limits>, owner: Http2Owner) {
    this.#limits = { ...HTTP2, ...limits }
    this.#owner = owner
  }

  take(socket: Duplex): void {
    const owner = this.#owner
    if (this.#sessions.size >= this.#limits.sessions) {
      owner.denied(
        'connection',
        new NetworkDenied(503, 'too-many-connections', 'Too many HTTP/2 connections'),
      )
      socket.destroy()
      return
    }
    this.#sessions.add(
      new Http2Session(socket, this.#limits, {
        all: this.#all,
        turn: this.#turn,
        serve: (from, to) => owner.serve(from, to),
        refuse: (denied, to) => {
          owner.denied('malformed request', denied)
          const text = Buffer.from(problemBody(denied))
          to.head(denied.status, Object.entries(problemHeaders(denied, text.length)))
          to.write(text)
          to.end()
        },
        denied: (denied) => owner.denied('malformed request', denied),
        closed: (session) => this.#sessions.delete(session),
      }),
    )
  }

  /** Ends what nobody waits for any longer. */
  tick(now: number): void {
    for (const session of [...this.#sessions]) session.tick(now)
  }

  close(): void {
    for (const session of [...this.#sessions]) session.close()
  }
}
