import { createHash } from 'node:crypto'

/** Content that is hashed piece by piece, in the order in which it stands in its file. */
export interface ContentHash {
  /** Where the next piece is to be put. */
  room(): Buffer
  /** A piece that stands in the room that was given last; it must not change any more. */
  update(piece: Buffer): void
  /** A hole: so many zeros, which nobody has to write down. */
  zeros(count: number): void
  /** Hex SHA-256; the last call but `close`. */
  digest(): string
  /** Gives back what it holds, at whatever point. */
  close(): void
}

export const PIECE = 4 << 20

/** On the thread that has the content. */
export class OwnHash implements ContentHash {
  readonly #hash = createHash('sha256')
  readonly #room = Buffer.allocUnsafe(PIECE)

  room(): Buffer {
    return this.#room
  }
  update(piece: Buffer): void {
    this.#hash.update(piece)
  }
  zeros(count: number): void {
    for (let left = count; left > 0; left -= PIECE) this.#hash.update(zerosOf(Math.min(PIECE, left)))
  }
  digest(): string {
    return this.#hash.digest('hex')
  }
  close(): void {
    // Nothing outlives it.
  }
}

let zeros: Buffer | undefined

function zerosOf(count: number): Buffer {
  zeros ??= Buffer.alloc(PIECE)
  return zeros.subarray(0, count)
}
