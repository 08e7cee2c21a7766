import type { Change, ChangesetTotals } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { GrowingTree } from '../lib/merkle.ts'
import { addToTotals, changeLeaf, headLeaf } from './changeset.ts'
import { Reader, readChange } from './changeset-codec.ts'
import { Arena } from './diff-arena.ts'
import { DiffCounts } from './diff-counts.ts'
import { type Linked, LinkedNames } from './diff-links.ts'
import type { HandedIn } from './diff-side-sink.ts'
import { EncodedChanges } from './encoded-changes.ts'

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
  readonly #tree = new GrowingTree()
  readonly #changes = new EncodedChanges()
  readonly #links = new LinkedNames()
  readonly #emit: (record: Buffer) => void
  readonly #progress: (paths: number) => void
  readonly #counts: DiffCounts
  readonly totals: ChangesetTotals = { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 }
  #thousands = 0

  constructor(
    bases: readonly string[],
    emit: (record: Buffer) => void,
    progress: (paths: number) => void,
    counts = new DiffCounts(),
  ) {
    this.#emit = emit
    this.#progress = progress
    this.#counts = counts
    this.#tree.append(headLeaf(bases))
  }

  look(): void {
    this.#tell(this.#counts.look())
  }

  /** How far all are that walk for this diff. */
  tellProgress(): void {
    this.#tell(this.#counts.looked)
  }

  #tell(looked: number): void {
    if (looked < (this.#thousands + 1) * 1000) return
    this.#thousands = Math.floor(looked / 1000)
    this.#progress(this.#thousands * 1000)
  }

  add(change: Change): void {
    requireRoom(this.#counts.keep())
    this.#keep(change)
  }

  addLinked(linked: Linked): void {
    requireRoom(this.#counts.keep())
    this.#links.add(linked)
  }

  /** What another thread found for this diff; it has counted it. */
  adopt({ totals, changes, linked }: HandedIn): void {
    for (const [name, count] of Object.entries(totals) as [keyof ChangesetTotals, number][])
      this.totals[name] += count
    this.#changes.arena.adopt(changes)
    const names = new Arena()
    names.adopt(linked.changes)
    for (const [index, { inode, unchanged }] of linked.names.entries())
      this.#links.add({ change: readChange(new Reader(names.record(index).bytes)), inode, unchanged })
  }

  #keep(change: Change): void {
    addToTotals(this.totals, change)
    this.#changes.add(change)
  }

  /** Sorts and emits what one base contributed. */
  endBase(): void {
    for (const change of this.#links.take()) this.#keep(change)
    const { arena } = this.#changes
    for (const index of arena.sorted()) {
      const { bytes, canonical } = arena.record(index)
      this.#tree.append(changeLeaf(bytes.subarray(0, canonical)))
      this.#emit(bytes)
    }
    arena.clear()
    this.#counts.endBase()
  }

  digest(): string {
    return this.#tree.root().toString('hex')
  }
}
