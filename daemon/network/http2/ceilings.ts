import type { NetworkLimits } from '../limits.ts'

/** What one connection of HTTP/2 may cost, besides the ceilings that all protocols share. `docs/network.md` lists them. */
export const HTTP2 = {
  /** Frames that ask for nothing and streams that end before their answer: so many at once, and each second. */
  chatter: 2_000,
  chatterPerSecond: 200,
  /** Streams in all connections of a branch together: each can hold its headers and the beginning of its answer. */
  streamsInAll: 2_048,
  /** Pieces of one header block. */
  continuations: 32,
  /** Of what was written and is not read; bodies wait elsewhere. */
  unreadBytes: 1_048_576,
  /** From here on no body is written before the agent reads. */
  fullBytes: 65_536,
  /** Of a body that goes on behind its answer. Some clients read none before they have sent all of it, and see no reset. */
  drainedBytes: 67_108_864,
  /** Streams that this end has ended and the agent may not know of yet. */
  remembered: 1_024,
} as const

export type Http2Limits = { readonly [Name in keyof typeof HTTP2]: number } & NetworkLimits

/** So much at once, and then so much in each second. */
export class Bucket {
  readonly #most: number
  readonly #perSecond: number
  #level: number
  #at: number

  constructor(most: number, perSecond: number, now: number) {
    this.#most = most
    this.#perSecond = perSecond
    this.#level = most
    this.#at = now
  }

  /** False: it is used up. */
  take(now: number): boolean {
    this.#level = Math.min(this.#most, this.#level + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    if (this.#level < 1) return false
    this.#level--
    return true
  }
}
