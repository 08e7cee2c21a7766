// pure

/**
 * Text as UTF-8, written piece by piece into one growing buffer. A document of some megabytes kept as strings costs
 * more in garbage collection than in making it.
 */
export class TextSink {
  #buffer: Buffer
  #length = 0

  constructor(capacity = 64 * 1024) {
    this.#buffer = Buffer.allocUnsafeSlow(capacity)
  }

  write(text: string): void {
    // No UTF-16 unit takes more than three bytes.
    const needed = this.#length + text.length * 3
    if (needed > this.#buffer.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.byteLength * 2))
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    this.#length += this.#buffer.write(text, this.#length)
  }

  /** A copy that is exactly as long as the text and owns its memory, so that it can be moved to another thread. */
  finish(): ArrayBuffer {
    return this.#buffer.buffer.slice(
      this.#buffer.byteOffset,
      this.#buffer.byteOffset + this.#length,
    ) as ArrayBuffer
  }
}
