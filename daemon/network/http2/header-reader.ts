import { CODE, Http2Fault } from './fault.ts'
import { type Field, STATIC_FIELDS, sizeOfField } from './header-table.ts'
import { huffmanText } from './huffman.ts'

/** What this end remembers of an agent's fields: what everybody has who says nothing else. */
const TABLE_BYTES = 4_096

export interface HeaderCeiling {
  readonly bytes: number
  readonly count: number
}

const broken = (what: string): Http2Fault => new Http2Fault(CODE.COMPRESSION_ERROR, what)

/** Reads the header blocks of one connection, in their order: each can name what those before it said. */
export class HeaderReader {
  readonly #ceiling: HeaderCeiling
  /** The newest first. */
  readonly #table: Field[] = []
  #size = 0
  #most = TABLE_BYTES

  constructor(ceiling: HeaderCeiling) {
    this.#ceiling = ceiling
  }

  /**
   * The fields of one block; undefined when they are more than the ceiling. Such a block is read to its end, because the next
   * one builds on it, but not kept: a byte can stand for four thousand.
   */
  read(block: Buffer): Field[] | undefined {
    const fields: Field[] = []
    const cursor = new Cursor(block)
    let [size, count] = [0, 0]
    while (!cursor.ended) {
      const first = cursor.peek()
      if ((first & 0xe0) === 0x20) {
        if (count > 0) throw broken('The size of the table changes in the middle of a block')
        this.#resize(cursor.number(5))
        continue
      }
      const field = this.#field(cursor, first)
      count++
      size += sizeOfField(field)
      if (size <= this.#ceiling.bytes && count <= this.#ceiling.count) fields.push(field)
    }
    return size <= this.#ceiling.bytes && count <= this.#ceiling.count ? fields : undefined
  }

  #field(cursor: Cursor, first: number): Field {
    if ((first & 0x80) !== 0) return this.#at(cursor.number(7))
    const remember = (first & 0x40) !== 0
    const index = cursor.number(remember ? 6 : 4)
    const name = index === 0 ? cursor.text() : this.#at(index)[0]
    const field: Field = [name, cursor.text()]
    if (remember) this.#remember(field)
    return field
  }

  #at(index: number): Field {
    const field =
      index <= STATIC_FIELDS.length ? STATIC_FIELDS[index - 1] : this.#table[index - STATIC_FIELDS.length - 1]
    if (field === undefined) throw broken('A field is named that was never said')
    return field
  }

  #remember(field: Field): void {
    this.#table.unshift(field)
    this.#size += sizeOfField(field)
    this.#evict()
  }

  #resize(most: number): void {
    if (most > TABLE_BYTES) throw broken('The table is made larger than it may be')
    this.#most = most
    this.#evict()
  }

  #evict(): void {
    while (this.#size > this.#most) {
      const oldest = this.#table.pop()
      if (oldest === undefined) break
      this.#size -= sizeOfField(oldest)
    }
  }
}

class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get ended(): boolean {
    return this.#at >= this.#bytes.length
  }

  peek(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) throw broken('A header block ends in the middle of a field')
    return byte
  }

  /** Nothing here is as long as two million. */
  number(bits: number): number {
    const most = 2 ** bits - 1
    let value = this.peek() & most
    this.#at++
    if (value < most) return value
    for (let shift = 0; shift <= 14; shift += 7) {
      const byte = this.peek()
      this.#at++
      value += (byte & 0x7f) * 2 ** shift
      if ((byte & 0x80) === 0) return value
    }
    throw broken('A number in a header block is too large')
  }

  text(): string {
    const packed = (this.peek() & 0x80) !== 0
    const length = this.number(7)
    const end = this.#at + length
    if (end > this.#bytes.length) throw broken('A header block ends in the middle of a text')
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end
    const text = packed ? huffmanText(bytes) : bytes.toString('latin1')
    if (text === undefined) throw broken('A text in a header block is not packed as it says')
    return text
  }
}
