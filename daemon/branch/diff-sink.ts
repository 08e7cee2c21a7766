import type { Change, ChangesetTotals } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { GrowingTree } from '../lib/merkle.ts'
import { addToTotals, changeLeaf, headLeaf } from './changeset.ts'
import { Writer, writeCanonical, writeIdentity } from './changeset-codec.ts'

/** More than a person can review and a daemon should hold. */
const MAX_CHANGES = 1_000_000

/** A file of the layer that has several names; whether it makes a group is known when all names were seen. */
interface Linked {
  change: Change
  inode: string
  unchanged: boolean
}

/** Encoded at once where possible: the objects of a change take four times the room. */
type Item = { path: Uint8Array } & (Encoded | { linked: Linked })

interface Encoded {
  bytes: Buffer
  /** Length of the part that the digest covers. */
  canonical: number
}

/**
 * Collects the changes of one base after the other, sorts them, decides hard links and computes the digest. What it
 * holds per change is its encoded form.
 */
export class DiffSink {
  readonly #writer = new Writer()
  readonly #tree = new GrowingTree()
  readonly #links = new Map<string, Linked[]>()
  readonly #emit: (record: Buffer) => void
  readonly #progress: (paths: number) => void
  readonly totals: ChangesetTotals = { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 }
  #items: Item[] = []
  #seen = 0
  #groups = 0

  constructor(bases: readonly string[], emit: (record: Buffer) => void, progress: (paths: number) => void) {
    this.#emit = emit
    this.#progress = progress
    this.#tree.append(headLeaf(bases))
  }

  /** Counts a path that was looked at, changed or not. */
  look(): void {
    this.#seen++
    if (this.#seen % 1000 === 0) this.#progress(this.#seen)
  }

  add(change: Change): void {
    this.#push({ path: change.path, ...this.#encode(change) })
  }

  /**
   * A file of the layer with several names. An unchanged one stands in the changeset only when another name shares its
   * inode: the commit must link that name to it.
   */
  addLinked(linked: Linked): void {
    const names = this.#links.get(linked.inode)
    if (names === undefined) this.#links.set(linked.inode, [linked])
    else names.push(linked)
    this.#push({ path: linked.change.path, linked })
  }

  #push(item: Item): void {
    if (this.#items.length >= MAX_CHANGES)
      throw new PuzzledError('too-large', `The branch changes more than ${MAX_CHANGES} paths`, {
        hint: 'Discard it, or commit from a narrower base.',
      })
    this.#items.push(item)
  }

  #encode(change: Change): Encoded {
    addToTotals(this.totals, change)
    writeCanonical(this.#writer, change)
    const canonical = this.#writer.length
    writeIdentity(this.#writer, change.identity, change.old)
    return { bytes: this.#writer.take(), canonical }
  }

  /** Sorts and emits what one base contributed. */
  endBase(): void {
    const items = this.#items.sort((a, b) => Buffer.compare(a.path, b.path))
    this.#items = []
    const numbers = new Map<string, number>()
    for (const item of items) {
      const encoded = 'linked' in item ? this.#resolve(item.linked, numbers) : item
      if (encoded === undefined) continue
      this.#tree.append(changeLeaf(encoded.bytes.subarray(0, encoded.canonical)))
      this.#emit(encoded.bytes)
    }
    this.#links.clear()
  }

  /** Groups are numbered in canonical order. A name without company is an ordinary file. */
  #resolve({ change, inode, unchanged }: Linked, numbers: Map<string, number>): Encoded | undefined {
    const names = this.#links.get(inode) ?? []
    if (names.length < 2) return unchanged ? undefined : this.#encode(change)
    if (names.every((name) => name.unchanged && name.change.identity?.ino === change.identity?.ino))
      return undefined
    const number = numbers.get(inode) ?? ++this.#groups
    numbers.set(inode, number)
    return this.#encode({ ...change, hardlink: number })
  }

  digest(): string {
    return this.#tree.root().toString('hex')
  }
}
