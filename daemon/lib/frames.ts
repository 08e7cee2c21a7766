// pure

/**
 * Messages on a stream: two lengths (32 bits each, little endian), a JSON header, and bytes that the header describes.
 * What comes from a worker has no bytes, and its JSON is judged by whoever asked: this file knows nothing but sizes.
 */
export interface Frame {
  readonly header: string
  readonly body: Uint8Array
}

export const PREFIX_BYTES = 8

/** The descriptor of a worker process on which it talks with us. */
export const CHANNEL = 3

/** What to write, in pieces: large bodies are not copied. */
export function frameOf(header: unknown, body: readonly Uint8Array[] = []): Uint8Array[] {
  const text = Buffer.from(JSON.stringify(header), 'utf8')
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32LE(text.length, 0)
  prefix.writeUInt32LE(
    body.reduce((sum, part) => sum + part.byteLength, 0),
    4,
  )
  return [Buffer.concat([prefix, text]), ...body]
}

export function lengthsOf(prefix: Buffer): { header: number; body: number } {
  return { header: prefix.readUInt32LE(0), body: prefix.readUInt32LE(4) }
}

/** Takes a stream as it comes and gives whole headers. A sender that breaks the form is an exception with its reason. */
export class HeaderReader {
  readonly #limit: number
  #parts: Buffer[] = []
  #held = 0
  #wanted = PREFIX_BYTES
  #inHeader = false

  constructor(limit: number) {
    this.#limit = limit
  }

  take(chunk: Buffer): string[] {
    const found: string[] = []
    this.#parts.push(chunk)
    this.#held += chunk.length
    while (this.#held >= this.#wanted) {
      const piece = this.#cut()
      if (this.#inHeader) found.push(piece.toString('utf8'))
      else this.#begin(piece)
      this.#inHeader = !this.#inHeader
      if (!this.#inHeader) this.#wanted = PREFIX_BYTES
    }
    return found
  }

  #begin(prefix: Buffer): void {
    const { header, body } = lengthsOf(prefix)
    if (body !== 0) throw new Error(`a message with ${body} bytes beside it`)
    if (header === 0 || header > this.#limit)
      throw new Error(`a message of ${header} bytes, at most ${this.#limit} are taken`)
    this.#wanted = header
  }

  /** Joins only when a whole piece is here: a large message in many chunks is copied once. */
  #cut(): Buffer {
    const all = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts)
    const piece = all.subarray(0, this.#wanted)
    const rest = all.subarray(this.#wanted)
    this.#parts = rest.length === 0 ? [] : [rest]
    this.#held = rest.length
    return piece
  }
}
