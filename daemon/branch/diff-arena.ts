// pure
import { Buffer } from 'node:buffer'

const BLOCK = 1 << 20

/** Encoded changes on their way to the arena of another thread. */
export interface Packed {
  blocks: readonly Uint8Array<ArrayBuffer>[]
  /** As in an arena. */
  places: Uint32Array<ArrayBuffer>
}

/**
 * Encoded changes of one base, back to back in large blocks, with their places in typed arrays: per change its own
 * bytes and 16 more, where an object with two buffers would take several hundred.
 */
export class Arena {
  #blocks: Buffer<ArrayBuffer>[] = []
  /** The block that is written to, and how much of it is. */
  #block = -1
  #used = BLOCK
  /** Per record: block, offset, length, length of the canonical part. */
  #places = new Uint32Array(4 * 1024)
  #count = 0

  get size(): number {
    return this.#count
  }

  /** Appends a record and returns its number. The path stands in it from byte 8 on, its length before that. */
  add(record: Uint8Array, canonical: number): number {
    if (this.#used + record.length > BLOCK) {
      this.#block = this.#blocks.push(Buffer.allocUnsafeSlow(Math.max(BLOCK, record.length))) - 1
      this.#used = 0
    }
    this.#blocks[this.#block]?.set(record, this.#used)
    this.#reserve(1)
    this.#places.set([this.#block, this.#used, record.length, canonical], this.#count * 4)
    this.#used += record.length
    return this.#count++
  }

  #reserve(more: number): void {
    let length = this.#places.length
    while ((this.#count + more) * 4 > length) length *= 2
    if (length === this.#places.length) return
    const larger = new Uint32Array(length)
    larger.set(this.#places)
    this.#places = larger
  }

  /** Hands over what is in it, and begins anew. What was written last is copied: a block is much for a few records. */
  pack(): Packed {
    const blocks = this.#blocks.map((block, index) =>
      index === this.#block ? Uint8Array.from(block.subarray(0, this.#used)) : block,
    )
    const places = this.#places.slice(0, this.#count * 4)
    this.clear()
    return { blocks, places }
  }

  /** Takes records of another arena on, without copying them. */
  adopt({ blocks, places }: Packed): void {
    const first = this.#blocks.length
    for (const { buffer, byteOffset, byteLength } of blocks)
      this.#blocks.push(Buffer.from(buffer, byteOffset, byteLength))
    const count = places.length / 4
    this.#reserve(count)
    this.#places.set(places, this.#count * 4)
    for (let at = this.#count * 4; at < (this.#count + count) * 4; at += 4)
      this.#places[at] = (this.#places[at] ?? 0) + first
    this.#count += count
  }

  record(index: number): { bytes: Buffer; canonical: number } {
    const [block = 0, offset = 0, length = 0, canonical = 0] = this.#places.subarray(index * 4, index * 4 + 4)
    const bytes = this.#blocks[block]
    if (bytes === undefined) throw new RangeError(`There is no record ${index}`)
    return { bytes: bytes.subarray(offset, offset + length), canonical }
  }

  /** Record numbers in bytewise order of their paths. */
  sorted(): Uint32Array {
    return Uint32Array.from({ length: this.#count }, (_, index) => index).sort((a, b) => this.#compare(a, b))
  }

  /** Byte by byte here: names are short, and a call into native code for each pair costs more than the comparison. */
  #compare(a: number, b: number): number {
    const places = this.#places
    const left = this.#blocks[places[a * 4] ?? 0]
    const right = this.#blocks[places[b * 4] ?? 0]
    if (left === undefined || right === undefined) return 0
    const from = (places[a * 4 + 1] ?? 0) + 4
    const to = (places[b * 4 + 1] ?? 0) + 4
    const length = lengthAt(left, from)
    const other = lengthAt(right, to)
    const shorter = Math.min(length, other)
    for (let at = 4; at < shorter + 4; at++) {
      const difference = (left[from + at] ?? 0) - (right[to + at] ?? 0)
      if (difference !== 0) return difference
    }
    return length - other
  }

  clear(): void {
    this.#blocks = []
    this.#block = -1
    this.#used = BLOCK
    this.#count = 0
  }
}

/** Little endian; a path is far shorter than 2^31. */
const lengthAt = (block: Uint8Array, at: number): number =>
  (block[at] ?? 0) | ((block[at + 1] ?? 0) << 8) | ((block[at + 2] ?? 0) << 16) | ((block[at + 3] ?? 0) << 24)
