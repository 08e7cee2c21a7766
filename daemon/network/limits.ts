// pure

/** Ceilings of one branch's gate. Each has a clear answer; `docs/network.md` lists them with it. */
export const LIMITS = {
  /** Open connections of the agent; the next one is closed. */
  connections: 1_024,
  /** Requests in work; the next one gets 503. */
  requests: 512,
  /** Request line and headers; more gets 431. */
  headerBytes: 65_536,
  headerCount: 200,
  /** From the first byte of a connection to the end of the headers; slower gets 408. */
  headersMs: 15_000,
  /** Between two requests on one connection of the agent. */
  keepAliveMs: 65_000,
  /** From the first byte of a request to the last of its body; slower gets 408. */
  requestMs: 3_600_000,
  /** A tunnel or WebSocket without any byte in either direction. */
  tunnelIdleMs: 3_600_000,
  /** TLS handshake with the agent. */
  handshakeMs: 10_000,
  /** Connecting to the other end; slower gets 504. */
  connectMs: 10_000,
  /** Until the other end answers; models think long. Slower gets 504. */
  responseMs: 600_000,
  /** Between two pieces of the answer. */
  responseIdleMs: 300_000,
  /** A body that decides between read and write (GraphQL, JSON-RPC); a larger one is a write. */
  judgedBodyBytes: 131_072,
  /** Response headers of the other end; more gets 502. */
  responseHeaderBytes: 65_536,
  /** Sockets per origin, for one branch only. */
  upstreamSockets: 64,
  /** Of the answer to a replayed request that is kept for people. */
  keptResponseBytes: 65_536,
  /** Of all those answers together; then the beginning of each is kept. */
  keptResponsesBytes: 16_777_216,
  /** Of that answer at all: its status is known, and somebody else must not keep the replay from going on. */
  drainedResponseBytes: 8_388_608,
  /** Addresses of one name that are tried, one after the other. */
  addresses: 8,
  /** HTTP/2 connections of the agent; each can buffer some megabytes. */
  sessions: 128,
  /** Of a body that may be under way in one HTTP/2 stream, and in all of a connection: 64 KiB keep an upload waiting. */
  streamWindowBytes: 262_144,
  sessionWindowBytes: 1_048_576,
  /** Streams in one HTTP/2 connection. */
  streams: 128,
} as const

export type NetworkLimits = { readonly [Name in keyof typeof LIMITS]: number }
