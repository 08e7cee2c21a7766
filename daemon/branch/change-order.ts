// pure
import { Buffer } from 'node:buffer'
import type { Change } from '../contract/changeset.ts'
import { SortedChanges } from './sorted-changes.ts'

/** Every directory above a path, the nearest first, without the base itself. */
function* directoriesAbove(path: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(path.buffer, path.byteOffset, path.byteLength)
  for (let slash = bytes.lastIndexOf(0x2f); slash > 0; slash = bytes.lastIndexOf(0x2f, slash - 1))
    yield bytes.subarray(0, slash)
}

/** The changes of the directories above a change. */
export function* changesAbove(changes: SortedChanges, { base, path }: Change): Generator<Change> {
  for (const above of directoriesAbove(path)) {
    const change = changes.find(base, above)
    if (change !== undefined) yield change
  }
}

/** A new node cannot be made before the directory that it is in. */
export const mustComeFirst = (above: Change, change: Change): boolean =>
  above.new?.type === 'dir' && above.old?.type !== 'dir' && change.new !== null

/** A directory of the base that is no directory any more cannot leave anything behind. */
export const goesAsWhole = (change: Change): boolean =>
  change.old?.type === 'dir' && change.new?.type !== 'dir'

/**
 * Adds to what is left out everything that cannot land without it: what is made below a directory that is not made, and
 * a directory that would have to go with what stays in it. Each pass only adds, so it ends.
 */
export function leaveWhatDepends(changes: readonly Change[], left: Set<Change>): void {
  if (left.size === 0) return
  const sorted = new SortedChanges(changes)
  for (let before = -1; before !== left.size; ) {
    before = left.size
    for (const change of changes)
      for (const above of changesAbove(sorted, change)) {
        if (left.has(above) && mustComeFirst(above, change)) left.add(change)
        if (left.has(change) && change.old !== null && goesAsWhole(above)) left.add(above)
      }
  }
}
