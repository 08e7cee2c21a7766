import type { Change, ChangesetTotals } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { GrowingTree } from '../lib/merkle.ts'
import { addToTotals, changeLeaf, headLeaf } from './changeset.ts'
import { Writer, writeCanonical, writeIdentity } from './changeset-codec.ts'
import { Arena } from './diff-arena.ts'

/** More than a person can review and a daemon should hold. */
const MAX_CHANGES = 1_000_000

/** A file of the layer that has several names; whether it makes a group is known when all names were seen. */
interface Linked {
  change: Change
  inode: string
  unchanged: boolean
}

/**
 * Collects the changes of one base after the other, sorts them, decides hard links and computes the digest. What it
 * holds per change is its encoded form; only files with several names stay objects.
 */
export class DiffSink {
  readonly #writer = new Writer()
  readonly #tree = new GrowingTree()
  readonly #arena = new Arena()
  readonly #links = new Map<string, Linked[]>()
  readonly #linkedAt = new Map<number, Linked>()
  readonly #emit: (record: Buffer) => void
  readonly #progress: (paths: number) => void
  readonly totals: ChangesetTotals = { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 }
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
    addToTotals(this.totals, change)
    this.#keep(change)
  }

  #keep(change: Change): number {
    if (this.#arena.size >= MAX_CHANGES)
      throw new PuzzledError('too-large', `The branch changes more than ${MAX_CHANGES} paths`, {
        hint: 'Discard it, or commit from a narrower base.',
      })
    const canonical = this.#encode(change)
    const index = this.#arena.add(this.#writer.view(), canonical)
    this.#writer.clear()
    return index
  }

  /**
   * A file of the layer with several names. An unchanged one stands in the changeset only when another name shares its
   * inode: the commit must link that name to it.
   */
  addLinked(linked: Linked): void {
    const names = this.#links.get(linked.inode)
    if (names === undefined) this.#links.set(linked.inode, [linked])
    else names.push(linked)
    this.#linkedAt.set(this.#keep(linked.change), linked)
  }

  #encode(change: Change): number {
    writeCanonical(this.#writer, change)
    const canonical = this.#writer.length
    writeIdentity(this.#writer, change.identity, change.old)
    return canonical
  }

  /** Sorts and emits what one base contributed. */
  endBase(): void {
    const numbers = new Map<string, number>()
    for (const index of this.#arena.sorted()) {
      const linked = this.#linkedAt.get(index)
      const found = linked === undefined ? this.#arena.record(index) : this.#resolve(linked, numbers)
      if (found === undefined) continue
      this.#tree.append(changeLeaf(found.bytes.subarray(0, found.canonical)))
      this.#emit(found.bytes)
    }
    this.#arena.clear()
    this.#links.clear()
    this.#linkedAt.clear()
  }

  /** Groups are numbered in canonical order. A name without company is an ordinary file. */
  #resolve(
    { change, inode, unchanged }: Linked,
    numbers: Map<string, number>,
  ): { bytes: Buffer; canonical: number } | undefined {
    const names = this.#links.get(inode) ?? []
    const alone = names.length < 2
    if (alone && unchanged) return undefined
    if (names.every((name) => name.unchanged && name.change.identity?.ino === change.identity?.ino))
      return undefined
    if (!alone && !numbers.has(inode)) numbers.set(inode, ++this.#groups)
    const number = numbers.get(inode)
    addToTotals(this.totals, change)
    const canonical = this.#encode(number === undefined ? change : { ...change, hardlink: number })
    return { bytes: this.#writer.take(), canonical }
  }

  digest(): string {
    return this.#tree.root().toString('hex')
  }
}
