import type { Change } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { digestOf } from './changeset.ts'
import { Writer, writeCanonical } from './changeset-codec.ts'
import type { Promised } from './diff-files.ts'
import { type DiffJob, walkBases } from './diff-job.ts'
import { type Linked, LinkedNames } from './diff-links.ts'
import { type DiffReceiver, requireRoom } from './diff-sink.ts'
import { canonicalOf } from './packed-change.ts'
import { SortedChanges } from './sorted-changes.ts'

/**
 * Compares the layers once more, after every process of the branch is gone. Of a whole changeset, which must have the
 * digest that was approved, every entry must still be there as it was, and no other; of a part, every entry. New content
 * is not read for this: the caller stages each file of `changes` with its digest checked while it is copied (`Stager`),
 * or lands nothing.
 */
export function requireApproved(
  diff: DiffJob,
  changes: readonly Change[],
  filesDigest: string,
  part: boolean,
): void {
  const reviewed = new SortedChanges(changes)
  const promised: Promised = (base, path) => reviewed.find(base, path)
  const bases = diff.bases.map(({ path }) => path)
  const isApproved = part || digestOf({ bases, changes, requests: [] }) === filesDigest
  const again = new Again(changes, reviewed)
  if (isApproved) walkBases(diff, again, { promised })
  if (!isApproved || again.missing > 0 || (!part && again.others > 0))
    throw new PuzzledError('changed-since-review', 'The branch is not what was reviewed any more', {
      hint: 'Nothing was changed. Review it again.',
      data: { approved: filesDigest, missing: again.missing, others: again.others },
    })
}

/** Counts what is found as it was reviewed. Nothing is kept but a mark for each: a second list would be as large as the first. */
class Again implements DiffReceiver {
  readonly #changes: readonly Change[]
  readonly #reviewed: SortedChanges
  readonly #found: Uint8Array
  readonly #writer = new Writer()
  readonly #links = new LinkedNames()
  missing: number
  /** What was not reviewed, or is another one now. */
  others = 0

  constructor(changes: readonly Change[], reviewed: SortedChanges) {
    this.#changes = changes
    this.#reviewed = reviewed
    this.#found = new Uint8Array(changes.length)
    this.missing = changes.length
  }

  look(): void {
    // Nobody asks how far this is.
  }

  add(change: Change): void {
    const index = this.#reviewed.indexOf(change.base, change.path)
    const before = this.#changes[index]
    // A place is told once; a second time it is something else.
    if (before === undefined || this.#found[index] !== 0 || !this.#isSame(before, change)) this.others++
    else {
      this.#found[index] = 1
      this.missing--
    }
  }

  #isSame(before: Change, change: Change): boolean {
    this.#writer.clear()
    writeCanonical(this.#writer, change)
    return canonicalOf(before).equals(this.#writer.view())
  }

  addLinked(linked: Linked): void {
    requireRoom(this.#links.size)
    this.#links.add(linked)
  }

  endBase(): void {
    for (const change of this.#links.take()) this.add(change)
  }
}
