/** From here on a piece is kept as it came, unless most of what it was cut from would be kept with it. */
const LARGE = 2_048
const SMALLEST_TAIL = 512
const LARGEST_TAIL = 16_384

/**
 * Bytes that wait to be read. They take about as much memory as they are, in whatever pieces they came: small ones are copied
 * together, and so are those that are the smaller part of what was read with them.
 */
export class ByteQueue {
  #pieces: Buffer[] = []
  #tail: Buffer | undefined
  #used = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(bytes: Buffer): void {
    this.#length += bytes.length
    if (bytes.length >= LARGE && bytes.length * 2 >= bytes.buffer.byteLength) {
      this.#seal()
      this.#pieces.push(bytes)
      return
    }
    for (let at = 0; at < bytes.length; ) {
      this.#tail ??= Buffer.allocUnsafeSlow(
        Math.min(LARGEST_TAIL, Math.max(SMALLEST_TAIL, bytes.length - at, this.#length)),
      )
      const copied = bytes.copy(this.#tail, this.#used, at)
      at += copied
      this.#used += copied
      if (this.#used === this.#tail.length) this.#seal()
    }
  }

  /** The next piece, of whatever size. */
  take(): Buffer | undefined {
    if (this.#pieces.length === 0) this.#seal()
    const piece = this.#pieces.shift()
    this.#length -= piece?.length ?? 0
    return piece
  }

  /** All of it in one. */
  all(): Buffer {
    this.#seal()
    const pieces = this.#pieces
    this.#pieces = []
    this.#length = 0
    const [first] = pieces
    return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces)
  }

  #seal(): void {
    if (this.#tail !== undefined && this.#used > 0) this.#pieces.push(this.#tail.subarray(0, this.#used))
    this.#tail = undefined
    this.#used = 0
  }
}
