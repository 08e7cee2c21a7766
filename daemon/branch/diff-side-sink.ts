import type { Change, ChangesetTotals } from '../contract/changeset.ts'
import { addToTotals } from './changeset.ts'
import type { Packed } from './diff-arena.ts'
import type { DiffCounts } from './diff-counts.ts'
import type { Linked } from './diff-links.ts'
import { type DiffReceiver, requireRoom } from './diff-sink.ts'
import { EncodedChanges } from './encoded-changes.ts'

/** What a second thread found, as it crosses to the first. */
export interface HandedIn {
  totals: ChangesetTotals
  changes: Packed
  /** Files with several names: the changes are not in the totals yet. */
  linked: { changes: Packed; names: readonly Omit<Linked, 'change'>[] }
}

const NOTHING: Readonly<ChangesetTotals> = {
  files: 0,
  bytes: 0,
  additions: 0,
  modifications: 0,
  deletions: 0,
}

/** Collects what a second thread finds, encoded, until it is handed in. */
export class SideSink implements DiffReceiver {
  readonly #counts: DiffCounts
  readonly #changes = new EncodedChanges()
  readonly #linked = new EncodedChanges()
  #names: Omit<Linked, 'change'>[] = []
  #totals: ChangesetTotals = { ...NOTHING }

  constructor(counts: DiffCounts) {
    this.#counts = counts
  }

  look(): void {
    this.#counts.look()
  }

  add(change: Change): void {
    requireRoom(this.#counts.keep())
    addToTotals(this.#totals, change)
    this.#changes.add(change)
  }

  addLinked({ change, inode, unchanged }: Linked): void {
    requireRoom(this.#counts.keep())
    this.#linked.add(change)
    this.#names.push({ inode, unchanged })
  }

  endBase(): void {
    // The thread that has the whole base ends it.
  }

  handIn(): HandedIn | undefined {
    if (this.#changes.arena.size + this.#names.length === 0) return undefined
    const linked = { changes: this.#linked.arena.pack(), names: this.#names }
    const found = { totals: this.#totals, changes: this.#changes.arena.pack(), linked }
    this.#names = []
    this.#totals = { ...NOTHING }
    return found
  }
}
