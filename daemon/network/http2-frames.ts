import type { ServerHttp2Stream } from 'node:http2'

/** Below it a frame costs more than its bytes: each is an object of its own until somebody reads it. */
const TINY_BYTES = 256
/** A megabyte of objects in one connection. */
const MOST_TINY = 8_192

/**
 * The window of a connection bounds the bytes that nobody has read, not the pieces they came in: a megabyte in frames of one
 * byte takes a hundred. Who sends so many that wait is told to calm down; as long as they are read they may be as small as
 * they like.
 */
export class TinyFrames {
  readonly #most: number
  #waiting = 0

  constructor(most = MOST_TINY) {
    this.#most = most
  }

  watch(stream: ServerHttp2Stream): void {
    let own = 0
    const forget = (): void => {
      this.#waiting -= own
      own = 0
    }
    const push = stream.push.bind(stream)
    stream.push = (chunk: Buffer | null): boolean => {
      if (stream.readableLength === 0) forget()
      if (chunk !== null && chunk.length < TINY_BYTES) {
        own++
        this.#waiting++
      }
      // NGHTTP2_ENHANCE_YOUR_CALM; what it has sent is let go with it.
      if (this.#waiting > this.#most && !stream.destroyed) {
        forget()
        stream.close(11)
        stream.destroy()
        return false
      }
      return push(chunk)
    }
    stream.once('close', forget)
  }
}

/**
 * A request that is taken back costs the gate as much as one that is answered, and whoever takes it back waits for
 * nothing: ceilings of requests in work do not bound it. Some are taken back at any time, many only in a flood.
 */
export class Resets {
  readonly #most: number
  readonly #perSecond: number
  readonly #now: () => number
  #left: number
  #at: number

  constructor(most: number, perSecond: number, now: () => number = () => performance.now()) {
    this.#most = most
    this.#perSecond = perSecond
    this.#now = now
    this.#left = most
    this.#at = now()
  }

  /** One more; false where it was one too many. */
  count(): boolean {
    const now = this.#now()
    this.#left = Math.min(this.#most, this.#left + ((now - this.#at) / 1000) * this.#perSecond) - 1
    this.#at = now
    return this.#left >= 0
  }
}
