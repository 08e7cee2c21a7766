import type { Readable } from 'node:stream'
import type { Arrival } from './gate.ts'
import type { Headers } from './request-nature.ts'

/** What an agent asked, as its protocol's parser hands it over. Nothing in it was judged. */
export interface AskedHead {
  readonly method: string
  /** As it stands in the request line, or `:path`. */
  readonly target: string
  /** Names in lower case; with HTTP/2 its pseudo headers are among them. */
  readonly headers: Headers
  readonly arrival: Arrival
  readonly http2: boolean
}

/** One request of the agent, over whichever protocol. */
export interface AgentRequest extends AskedHead {
  /** The body where all of it came together with the head: most are small. */
  readonly whole: Buffer | undefined
  /** Any other body; neither of both where there is none. */
  readonly body: Readable | undefined
  /** Nothing of it is still to come. */
  readonly complete: boolean
  /** Nobody will read what is left of it. */
  discard(): void
}

/** The way back to the agent. What is written to somebody who went away is lost quietly. */
export interface AgentResponse {
  /** Something has left: the head cannot be another one any more. */
  readonly begun: boolean
  /** The agent went away before everything was said. */
  readonly gone: boolean
  /** Called at most once, when that happens. */
  onGone(listener: () => void): void
  /** Sends `100 Continue` to an agent that waits for it. */
  proceed(): void
  /** Leaves with the first bytes of the body, with `flush` or with `end`. Throws where a header cannot be written. */
  head(status: number, headers: Headers): void
  flush(): void
  /** False: `onDrain` says when there is room again. */
  write(bytes: Buffer): boolean
  onDrain(listener: () => void): void
  end(trailers?: Headers): void
  /** Nothing follows this answer on its connection. To be said before `end`. */
  last(): void
  /** Cuts the answer off, so that half of it does not look like a whole one. */
  destroy(): void
}
