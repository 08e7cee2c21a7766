// pure
import { createHash } from 'node:crypto'
import { type Address, address4, address6 } from './address.ts'
import type { Hostname } from './hostname.ts'

/** 198.18.0.0/15 is set aside for tests of network devices: no real destination is in it. */
const SIZE = 131_070
const FIRST = ((198 << 24) | (18 << 16)) >>> 0
/** A unique-local prefix of our own; the last 32 bits are those of the IPv4 address. */
const PREFIX6 = [0xfd, 0x70, 0x75, 0x7a, 0x7a, 0x6c, 0, 0, 0, 0, 0, 0]
/** More names than this are not looked up by programs but by tunnels. */
const MAX_NAMES = 8_192

/**
 * The addresses that names have inside one branch. They lead to the gate, which reads the name back from them. A name
 * keeps its address while the branch lives, and gets the same one after a restart unless two names collide.
 */
export class NameBook {
  readonly #byIndex = new Map<number, Hostname>()
  readonly #byName = new Map<string, number>()

  /** Undefined when the book is full. */
  assign(host: Hostname): { v4: Address; v6: Address } | undefined {
    const known = this.#byName.get(host.text)
    if (known !== undefined) return addresses(known)
    if (this.#byName.size >= MAX_NAMES) return undefined
    let index = createHash('sha256').update(host.text).digest().readUInt32BE(0) % SIZE
    while (this.#byIndex.has(index)) index = (index + 1) % SIZE
    this.#byIndex.set(index, host)
    this.#byName.set(host.text, index)
    return addresses(index)
  }

  /** The name that a connection to this address means; undefined for an address that was never given out. */
  nameOf(address: Address): Hostname | undefined {
    const bytes = address.family === 4 ? address.bytes : address.bytes.slice(12)
    if (address.family === 6 && PREFIX6.some((byte, at) => address.bytes[at] !== byte)) return undefined
    const value = Buffer.from(bytes).readUInt32BE(0)
    return value > FIRST && value <= FIRST + SIZE ? this.#byIndex.get(value - FIRST - 1) : undefined
  }

  /** Whether it lies in the ranges that this book gives out. */
  static covers(address: Address): boolean {
    if (address.family === 6) return PREFIX6.every((byte, at) => address.bytes[at] === byte)
    return address.bytes[0] === 198 && ((address.bytes[1] ?? 0) & 0xfe) === 18
  }
}

function addresses(index: number): { v4: Address; v6: Address } {
  const value = FIRST + index + 1
  const bytes = [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]
  return { v4: address4(bytes), v6: address6([...PREFIX6, ...bytes]) }
}
