// pure
import { createHash, hash } from 'node:crypto'

/** RFC 6962 hashing: leaves and nodes are hashed with different prefixes, so that neither can pass for the other. */

export const leafHash = (data: Uint8Array): Buffer => hashBehind(LEAF, data)
const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => hashBehind(NODE, left, right)

const LEAF = 0
const NODE = 1

/** A hash object for each of a hundred thousand small pieces costs more than hashing them. */
let scratch = Buffer.alloc(1024)
function hashBehind(prefix: number, first: Uint8Array, second: Uint8Array = NOTHING): Buffer {
  const length = 1 + first.length + second.length
  if (length > scratch.length) scratch = Buffer.alloc(length * 2)
  scratch[0] = prefix
  scratch.set(first, 1)
  scratch.set(second, 1 + first.length)
  return hash('sha256', scratch.subarray(0, length), 'buffer')
}

const NOTHING = new Uint8Array(0)

/** The root of an empty tree is the hash of nothing. */
const emptyRoot = (): Buffer => createHash('sha256').digest()

/**
 * A tree that only grows, in memory that grows with the logarithm of its size: the roots of its full subtrees, the
 * largest first. This is all that is needed to append and to state the root.
 */
export class GrowingTree {
  #size: number
  readonly #edge: Buffer[]

  constructor(size = 0, edge: readonly Uint8Array[] = []) {
    if (edge.length !== countOnes(size))
      throw new RangeError(`A tree of ${size} leaves does not have ${edge.length} edge hashes`)
    this.#size = size
    this.#edge = edge.map((hash) => Buffer.from(hash))
  }

  get size(): number {
    return this.#size
  }

  edge(): readonly Buffer[] {
    return [...this.#edge]
  }

  append(leaf: Buffer): void {
    let hash = leaf
    // One merge for each full subtree that this leaf completes: the trailing ones of the old size.
    for (let rest = this.#size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
      const left = this.#edge.pop()
      if (left !== undefined) hash = nodeHash(left, hash)
    }
    this.#edge.push(hash)
    this.#size++
  }

  root(): Buffer {
    let hash: Buffer | undefined
    for (let at = this.#edge.length - 1; at >= 0; at--) {
      const left = this.#edge[at]
      if (left !== undefined) hash = hash === undefined ? left : nodeHash(left, hash)
    }
    return hash ?? emptyRoot()
  }
}

function countOnes(size: number): number {
  let ones = 0
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) ones += rest % 2
  return ones
}

export function rootOf(leaves: readonly Buffer[]): Buffer {
  const tree = new GrowingTree()
  for (const leaf of leaves) tree.append(leaf)
  return tree.root()
}

/** Largest power of two below `size`; size ≥ 2. */
function split(size: number): number {
  let half = 1
  while (half * 2 < size) half *= 2
  return half
}

/** Leaves from `start` up to but not `end`; a proof is a list of roots of such ranges. */
export interface LeafRange {
  start: number
  end: number
}

/** What the audit path of leaf `index` consists of, from the leaf's sibling up to the root (RFC 6962, 2.1.1). */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  if (!Number.isInteger(index) || index < 0 || index >= size)
    throw new RangeError(`There is no leaf ${index} in a tree of ${size}`)
  const path: LeafRange[] = []
  for (let [start, end] = [0, size]; end - start > 1; ) {
    const middle = start + split(end - start)
    if (index < middle) path.push({ start: middle, end })
    else path.push({ start, end: middle })
    ;[start, end] = index < middle ? [start, middle] : [middle, end]
  }
  return path.reverse()
}

/** Audit path of leaf `index`. */
export const inclusionProof = (leaves: readonly Buffer[], index: number): Buffer[] =>
  inclusionRanges(index, leaves.length).map(({ start, end }) => rootOf(leaves.slice(start, end)))

/** The roots of ranges that do not overlap, in the order in which they were asked for, of leaves that pass by once. */
export class RangeRoots {
  readonly #ordered: readonly LeafRange[]
  readonly #roots = new Map<LeafRange, Buffer>()
  #at = 0
  #tree = new GrowingTree()
  #next = 0

  constructor(ranges: readonly LeafRange[]) {
    this.#ordered = [...ranges].sort((a, b) => a.start - b.start)
  }

  append(leaf: Buffer): void {
    const range = this.#ordered[this.#at]
    const place = this.#next++
    if (range === undefined || place < range.start) return
    this.#tree.append(leaf)
    if (place + 1 < range.end) return
    this.#roots.set(range, this.#tree.root())
    this.#tree = new GrowingTree()
    this.#at++
  }

  /** Throws where the leaves ended before the ranges did. */
  of(ranges: readonly LeafRange[]): Buffer[] {
    return ranges.map((range) => {
      const root = this.#roots.get(range)
      if (root === undefined) throw new RangeError(`There are only ${this.#next} leaves`)
      return root
    })
  }
}

/** RFC 9162, 2.1.3.2: recomputes the root from a leaf hash and its audit path. */
export function provesInclusion(
  leaf: Uint8Array,
  index: number,
  size: number,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (index < 0 || index >= size) return false
  let position = index
  let last = size - 1
  let hash: Uint8Array = leaf
  for (const sibling of proof) {
    if (last === 0) return false
    if (position % 2 === 1 || position === last) {
      hash = nodeHash(sibling, hash)
      while (position % 2 === 0 && position !== 0) {
        position = Math.floor(position / 2)
        last = Math.floor(last / 2)
      }
    } else hash = nodeHash(hash, sibling)
    position = Math.floor(position / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && Buffer.from(hash).equals(root)
}

/** What the proof consists of that the tree of the first `size` leaves is a prefix of this one (RFC 6962, 2.1.2). */
export function consistencyRanges(size: number, whole: number): LeafRange[] {
  if (!Number.isInteger(size) || size <= 0 || size > whole)
    throw new RangeError(`${size} is not a size between 1 and ${whole}`)
  const path: LeafRange[] = []
  let [start, end] = [0, whole]
  while (size < end) {
    const middle = start + split(end - start)
    if (size <= middle) path.push({ start: middle, end })
    else path.push({ start, end: middle })
    ;[start, end] = size <= middle ? [start, middle] : [middle, end]
  }
  // Where the old tree is a subtree of the new one, whoever checks has its root already.
  if (start > 0) path.push({ start, end })
  return path.reverse()
}

/** Proof that the tree of the first `size` leaves is a prefix of this one. */
export const consistencyProof = (leaves: readonly Buffer[], size: number): Buffer[] =>
  consistencyRanges(size, leaves.length).map(({ start, end }) => rootOf(leaves.slice(start, end)))

export interface TreeHead {
  size: number
  root: Uint8Array
}

/** RFC 9162, 2.1.4.2: whether `proof` shows that `after` grew out of `before`. */
export function provesConsistency(before: TreeHead, after: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (before.size <= 0 || before.size > after.size) return false
  if (before.size === after.size) return proof.length === 0 && Buffer.from(before.root).equals(after.root)
  const isPower = countOnes(before.size) === 1
  const path = isPower ? [before.root, ...proof] : [...proof]
  let position = before.size - 1
  let last = after.size - 1
  while (position % 2 === 1) {
    position = Math.floor(position / 2)
    last = Math.floor(last / 2)
  }
  const first = path[0]
  if (first === undefined) return false
  let old: Uint8Array = first
  let now: Uint8Array = first
  for (const node of path.slice(1)) {
    if (last === 0) return false
    if (position % 2 === 1 || position === last) {
      old = nodeHash(node, old)
      now = nodeHash(node, now)
      while (position % 2 === 0 && position !== 0) {
        position = Math.floor(position / 2)
        last = Math.floor(last / 2)
      }
    } else now = nodeHash(now, node)
    position = Math.floor(position / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && Buffer.from(old).equals(before.root) && Buffer.from(now).equals(after.root)
}
