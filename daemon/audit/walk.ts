// pure
import type { KeyObject } from 'node:crypto'
import { Chain, type Misfit } from './chain.ts'
import { decodeRecord, HEAD_KIND, type HeadFacts, mayBeHead } from './record.ts'

export type HeadCheck = (key: KeyObject, size: number, root: Uint8Array, signature: string) => boolean

/** Everything that the next line depends on, and what comes after it. */
export interface WalkState {
  next: number
  prev: string
  /** Roots of the full subtrees in hex, the largest first. */
  edge: readonly string[]
}

/** Reads lines in order and says why one is wrong: its number, its chain, or a signed head that does not fit. */
export class LogWalk {
  readonly #key: KeyObject
  readonly #verifies: HeadCheck
  #chain: Chain | null = null
  #begin: WalkState | null = null
  readonly #mayResume: boolean
  #heads = 0
  #signed = 0
  #needsHead = false

  /** Whether the first line may be a head that says where the tree stood: not where the log's first segment is at hand. */
  constructor(key: KeyObject, verifies: HeadCheck, mayResume: boolean) {
    this.#key = key
    this.#verifies = verifies
    this.#mayResume = mayResume
  }

  get next(): number {
    return this.#chain?.next ?? 0
  }

  /** Where a walk stood before its first line that did not begin with the log; null as long as it did not. */
  get begin(): WalkState | null {
    return this.#begin
  }

  get state(): WalkState {
    const { next, prev, tree } = this.chain
    return { next, prev, edge: tree.edge().map((hash) => hash.toString('hex')) }
  }

  get heads(): number {
    return this.#heads
  }

  /** How many records the last head has signed. */
  get signed(): number {
    return this.#signed
  }

  get chain(): Chain {
    this.#chain ??= new Chain()
    return this.#chain
  }

  /** Every segment but the log's first begins with a head: without that rule, a log without heads would need no key. */
  beginSegment(number: number): void {
    this.#needsHead = number > 1
  }

  /** Why this line is wrong here, or null when it was taken. */
  take(line: Buffer): Misfit | null {
    const head = mayBeHead(line) ? headOf(line) : null
    // A log whose old segments were removed begins with a signed head that says where the tree stood.
    if (this.#chain === null && this.#mayResume && head !== null && head.seq > 0) {
      this.#chain = resumeAt(head)
      this.#begin = this.state
    }
    const wrong =
      this.chain.refuses(line) ?? (head === null ? this.#lacksHead() : misfit(this.#refusesHead(head.facts)))
    if (wrong !== null) return wrong
    this.#needsHead = false
    this.chain.append(line)
    return null
  }

  #lacksHead(): Misfit | null {
    return misfit(this.#needsHead ? 'a segment begins without a signed tree head' : null)
  }

  #refusesHead({ size, root, edge, signature }: Partial<HeadFacts>): string | null {
    if (
      typeof size !== 'number' ||
      typeof root !== 'string' ||
      typeof signature !== 'string' ||
      !Array.isArray(edge)
    )
      return 'the tree head is incomplete'
    const { tree } = this.chain
    if (size !== tree.size || root !== tree.root().toString('hex'))
      return 'the tree head does not match the records before it'
    if (!this.#verifies(this.#key, size, tree.root(), signature))
      return 'the signature of the tree head is wrong'
    this.#heads++
    this.#signed = size
    return null
  }
}

const misfit = (why: string | null): Misfit | null => (why === null ? null : { why, isLink: false })

interface Head {
  seq: number
  prev: string
  facts: Partial<HeadFacts>
}

function headOf(line: Buffer): Head | null {
  const record = decodeRecord(line)
  return record?.kind === HEAD_KIND ? record : null
}

/** A head that contradicts itself yields an empty chain, which the comparison that follows refuses. */
function resumeAt({ prev, facts: { size, edge } }: Head): Chain {
  if (typeof size !== 'number' || !Array.isArray(edge)) return new Chain()
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
