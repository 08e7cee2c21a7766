// pure
import { GrowingTree, leafHex } from '../lib/merkle.ts'
import { FIRST_PREV, linePrefix } from './record.ts'

export interface Misfit {
  why: string
  /** It has the right number and another hash of the line before: which of the two was changed, only the next one tells. */
  isLink: boolean
}

/**
 * The state that a line must fit: its number and the hash of the line before. One SHA-256 per line serves both the
 * chain and the tree.
 */
export class Chain {
  readonly tree: GrowingTree
  #prev: string

  constructor(size = 0, edge: readonly Uint8Array[] = [], prev = FIRST_PREV) {
    this.tree = new GrowingTree(size, edge)
    this.#prev = prev
  }

  /** Number of the next line; lines count from 0. */
  get next(): number {
    return this.tree.size
  }

  get prev(): string {
    return this.#prev
  }

  /** Takes a line that was encoded with `next` and `prev`. */
  append(line: Uint8Array): void {
    this.#prev = leafHex(line)
    this.tree.appendHex(this.#prev)
  }

  /** Why the line does not belong here, or null when it does. */
  refuses(line: Buffer): Misfit | null {
    // Comparing the beginning is how verification avoids parsing.
    const expected = linePrefix(this.next, this.#prev)
    const begin = line.toString('latin1', 0, expected.length)
    if (begin === expected) return null
    return begin.startsWith(`{"seq":${this.next},`)
      ? { why: 'it does not follow the line before it: one of the two was changed', isLink: true }
      : {
          why: `record ${this.next} was expected here: records are missing, repeated or out of order`,
          isLink: false,
        }
  }
}
