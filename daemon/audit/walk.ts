// pure
import type { KeyObject } from 'node:crypto'
import { Chain } from './chain.ts'
import { decodeRecord, HEAD_KIND, type HeadFacts, mayBeHead } from './record.ts'

export type HeadCheck = (key: KeyObject, size: number, root: Uint8Array, signature: string) => boolean

/** Reads lines in order and says why one is wrong: its number, its chain, or a signed head that does not fit. */
export class LogWalk {
  readonly #key: KeyObject
  readonly #verifies: HeadCheck
  #chain: Chain | null = null
  readonly #mayResume: boolean
  #heads = 0

  /** Whether the first line may be a head that says where the tree stood: not where the log's first segment is at hand. */
  constructor(key: KeyObject, verifies: HeadCheck, mayResume: boolean) {
    this.#key = key
    this.#verifies = verifies
    this.#mayResume = mayResume
  }

  get next(): number {
    return this.#chain?.next ?? 0
  }

  get heads(): number {
    return this.#heads
  }

  get chain(): Chain {
    this.#chain ??= new Chain()
    return this.#chain
  }

  /** Why this line is wrong here, or null when it was taken. */
  take(line: Buffer): string | null {
    if (mayBeHead(line)) {
      const wrong = this.#checkHead(line)
      if (wrong !== null) return wrong
    }
    const why = this.chain.refuses(line)
    if (why !== null) return why
    this.chain.append(line)
    return null
  }

  #checkHead(line: Buffer): string | null {
    const record = decodeRecord(line)
    if (record === null || record.kind !== HEAD_KIND) return null
    const { size, root, edge, signature } = record.facts as Partial<HeadFacts>
    if (
      typeof size !== 'number' ||
      typeof root !== 'string' ||
      typeof signature !== 'string' ||
      !Array.isArray(edge)
    )
      return 'the tree head is incomplete'
    // A log whose old segments were removed begins with a signed head that says where the tree stood.
    if (this.#chain === null && this.#mayResume && record.seq > 0)
      this.#chain = resumeAt(size, edge, record.prev)
    const { tree } = this.chain
    if (size !== tree.size || root !== tree.root().toString('hex'))
      return 'the tree head does not match the records before it'
    if (!this.#verifies(this.#key, size, tree.root(), signature))
      return 'the signature of the tree head is wrong'
    this.#heads++
    return null
  }
}

/** A head that contradicts itself yields an empty chain, which the comparison that follows refuses. */
function resumeAt(size: number, edge: readonly unknown[], prev: string): Chain {
  try {
    return new Chain(
      size,
      edge.map((hash) => Buffer.from(String(hash), 'hex')),
      prev,
    )
  } catch (error) {
    if (error instanceof RangeError) return new Chain()
    throw error
  }
}
