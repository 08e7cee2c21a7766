// pure
import { createHash, hash } from 'node:crypto'

/** RFC 6962 hashing: leaves and nodes are hashed with different prefixes, so that neither can pass for the other. */

export const leafHash = (data: Uint8Array): Buffer => bytesOf(hash('sha256', leafOf(data), 'binary'))
/** The same as text, for whoever keeps the hashes as text. */
export const leafHex = (data: Uint8Array): string => hash('sha256', leafOf(data), 'hex')

const LEAF = 0
const NODE = 1
const HASH_BYTES = 32
/** Where the two children stand behind the prefix of a node. */
const LEFT = 1
const RIGHT = LEFT + HASH_BYTES

/**
 * A hash object, or a buffer for the result, costs more than hashing the few bytes of a leaf: so the result comes as a
 * string of one character per byte.
 */
const bytesOf = (binary: string): Buffer => Buffer.from(binary, 'latin1')

const USUAL = 4096
/** Its first byte is the prefix of a leaf. One view of it is kept for each length: a new one costs as much as the copy. */
const scratch = Buffer.alloc(USUAL, LEAF)
const views: (Buffer | undefined)[] = []

function leafOf(data: Uint8Array): Buffer {
  const length = 1 + data.length
  if (length > USUAL) return Buffer.concat([Uint8Array.of(LEAF), data])
  scratch.set(data, 1)
  views[length] ??= scratch.subarray(0, length)
  return views[length]
}

function newPair(): Buffer {
  const pair = Buffer.alloc(RIGHT + HASH_BYTES)
  pair[0] = NODE
  return pair
}

function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  const pair = Buffer.concat([Uint8Array.of(NODE), left, right])
  return bytesOf(hash('sha256', pair, 'binary'))
}

/** The root of an empty tree is the hash of nothing. */
const emptyRoot = (): Buffer => createHash('sha256').digest()

/**
 * A tree that only grows, in memory that grows with the logarithm of its size: for each level a node that waits for its
 * right child. This is all that is needed to append and to state the root.
 */
export class GrowingTree {
  #size: number
  /** The left child is valid where the bit of the level is set in the size. */
  readonly #pairs: Buffer[] = []

  constructor(size = 0, edge: readonly Uint8Array[] = []) {
    const fits = edge.length === countOnes(size) && edge.every(({ length }) => length === HASH_BYTES)
    if (!Number.isSafeInteger(size) || size < 0 || !fits)
      throw new RangeError(`A tree of ${size} leaves does not have these ${edge.length} edge hashes`)
    this.#size = size
    const smallestFirst = edge.toReversed().values()
    for (const level of levelsOf(size)) this.#pair(level).set(smallestFirst.next().value ?? NOTHING, LEFT)
  }

  get size(): number {
    return this.#size
  }

  /** The roots of the full subtrees, the largest first. */
  edge(): readonly Buffer[] {
    const left = levelsOf(this.#size).map((level) => this.#pair(level).subarray(LEFT, RIGHT))
    return left.reverse().map((hash) => Buffer.from(hash))
  }

  append(leaf: Uint8Array): void {
    if (leaf.length !== HASH_BYTES) throw new RangeError(`A leaf hash does not have ${leaf.length} bytes`)
    this.#pair(0).set(leaf, sideOf(this.#size))
    this.#merge()
  }

  /** What `leafHex` says. */
  appendHex(leaf: string): void {
    if (this.#pair(0).write(leaf, sideOf(this.#size), HASH_BYTES, 'hex') !== HASH_BYTES)
      throw new RangeError(`"${leaf}" is not a leaf hash`)
    this.#merge()
  }

  root(): Buffer {
    const [smallest, ...larger] = this.edge().toReversed()
    return smallest === undefined
      ? emptyRoot()
      : larger.reduce((hash, left) => nodeHash(left, hash), smallest)
  }

  /** After a leaf was put where it belongs: one node for each full subtree that it completes, the trailing ones of the old size. */
  #merge(): void {
    let rest = this.#size
    for (let level = 0; rest % 2 === 1; level++) {
      const node = hash('sha256', this.#pair(level), 'binary')
      rest = Math.floor(rest / 2)
      this.#pair(level + 1).write(node, sideOf(rest), HASH_BYTES, 'latin1')
    }
    this.#size++
  }

  #pair(level: number): Buffer {
    const known = this.#pairs[level]
    if (known !== undefined) return known
    while (this.#pairs.length < level) this.#pairs.push(newPair())
    const pair = newPair()
    this.#pairs.push(pair)
    return pair
  }
}

const NOTHING = new Uint8Array(0)

/** Where the next child of a level goes, after so many of them. */
const sideOf = (count: number): number => (count % 2 === 1 ? RIGHT : LEFT)

/** Those that hold one hash too many for a pair, the lowest first. */
function levelsOf(size: number): number[] {
  const levels: number[] = []
  for (let [rest, level] = [size, 0]; rest > 0; rest = Math.floor(rest / 2), level++)
    if (rest % 2 === 1) levels.push(level)
  return levels
}

const countOnes = (size: number): number => levelsOf(size).length

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
