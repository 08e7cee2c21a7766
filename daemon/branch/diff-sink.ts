import type { Change, ChangesetTotals } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { GrowingTree } from '../lib/merkle.ts'
import { addToTotals, changeLeaf, headLeaf } from './changeset.ts'
import { Writer, writeCanonical, writeIdentity } from './changeset-codec.ts'
import { Arena } from './diff-arena.ts'
import { type Linked, LinkedNames } from './diff-links.ts'

/** More than a person can review and a daemon should hold. */
const MAX_CHANGES = 1_000_000

export function requireRoom(kept: number): void {
  if (kept >= MAX_CHANGES)
    throw new PuzzledError('too-large', `The branch changes more than ${MAX_CHANGES} paths`, {
      hint: 'Discard it, or commit from a narrower base.',
    })
}

/** What a walk tells of what it finds, base by base. */
export interface DiffReceiver {
  /** Counts a path that was looked at, changed or not. */
  look(): void
  add(change: Change): void
  addLinked(linked: Linked): void
  endBase(): void
}

/**
 * Collects the changes of one base after the other, sorts them, decides hard links and computes the digest. What it
 * holds per change is its encoded form; only files with several names stay objects.
 */
export class DiffSink implements DiffReceiver {
  readonly #writer = new Writer()
  readonly #tree = new GrowingTree()
  readonly #arena = new Arena()
  readonly #links = new LinkedNames()
  readonly #emit: (record: Buffer) => void
  readonly #progress: (paths: number) => void
  readonly totals: ChangesetTotals = { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 }
  #seen = 0

  constructor(bases: readonly string[], emit: (record: Buffer) => void, progress: (paths: number) => void) {
    this.#emit = emit
    this.#progress = progress
    this.#tree.append(headLeaf(bases))
  }

  look(): void {
    this.#seen++
    if (this.#seen % 1000 === 0) this.#progress(this.#seen)
  }

  add(change: Change): void {
    requireRoom(this.#arena.size + this.#links.size)
    this.#keep(change)
  }

  addLinked(linked: Linked): void {
    requireRoom(this.#arena.size + this.#links.size)
    this.#links.add(linked)
  }

  #keep(change: Change): void {
    addToTotals(this.totals, change)
    const canonical = this.#encode(change)
    this.#arena.add(this.#writer.view(), canonical)
    this.#writer.clear()
  }

  #encode(change: Change): number {
    writeCanonical(this.#writer, change)
    const canonical = this.#writer.length
    writeIdentity(this.#writer, change.identity, change.old)
    return canonical
  }

  /** Sorts and emits what one base contributed. */
  endBase(): void {
    for (const change of this.#links.take()) this.#keep(change)
    for (const index of this.#arena.sorted()) {
      const { bytes, canonical } = this.#arena.record(index)
      this.#tree.append(changeLeaf(bytes.subarray(0, canonical)))
      this.#emit(bytes)
    }
    this.#arena.clear()
  }

  digest(): string {
    return this.#tree.root().toString('hex')
  }
}
