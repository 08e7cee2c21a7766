// pure
import { encodePath } from '../contract/bytes.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import type { ConflictEntry, RebaseChoices } from '../contract/engine.ts'
import { leaveWhatDepends } from './change-order.ts'
import { globMatcher } from './select.ts'

/** A change, by its place in the changeset, that would overwrite what somebody did to the base since the fork. */
export interface Collision {
  index: number
  message: string
  /** Both sides' lines fit together. */
  merged?: MergedFile
}

/** A file that holds what both sides did, with the change that makes it. */
export interface MergedFile {
  change: Change
  bytes: Uint8Array
  /** The commit that kept the version which both sides began from. */
  commit: string
}

export interface RebasePlan {
  /** What is done again over the present base, in canonical order. */
  changes: readonly Change[]
  /** Collisions that nobody decided about: while there is one, nothing is done. */
  open: readonly ConflictEntry[]
  /** Those of `changes` whose content is neither side's. */
  merged: readonly MergedFile[]
}

/**
 * What of a branch is done again on the present base. `drop` leaves any change out; of a collision `theirs` keeps the
 * base's side and `ours` the branch's; without either, lines that fit together are merged. A path that two choices name
 * is not decided: it stays open.
 */
export function planRebase(
  changeset: Changeset,
  collisions: readonly Collision[],
  choices: RebaseChoices,
): RebasePlan {
  const [ours, theirs, drop] = [choices.ours, choices.theirs, choices.drop].map((globs) =>
    globs.map((glob) => globMatcher(glob)),
  )
  const named = (change: Change, globs: typeof ours): boolean =>
    globs?.some((glob) => glob(change.path, changeset.bases[change.base] ?? '')) ?? false
  const collided = new Map(collisions.map((collision) => [collision.index, collision]))
  const merged = new Map<Change, MergedFile>()
  const left = new Set<Change>()
  const open: ConflictEntry[] = []
  for (const [index, change] of changeset.changes.entries()) {
    const collision = collided.get(index)
    const finding = change.findings[0]
    if (named(change, drop)) left.add(change)
    else if (finding !== undefined)
      open.push({ ...encodePath(change.path), message: `it can only be dropped: ${finding.message}` })
    else if (collision !== undefined) {
      const [keep, yields] = [named(change, ours), named(change, theirs)]
      if (yields && !keep) left.add(change)
      else if (!keep && collision.merged !== undefined) merged.set(change, collision.merged)
      else if (keep === yields) open.push({ ...encodePath(change.path), message: collision.message })
    }
  }
  leaveWhatDepends(changeset.changes, left)
  const stays = changeset.changes.filter((change) => !left.has(change))
  return {
    changes: stays.map((change) => merged.get(change)?.change ?? change),
    open,
    merged: stays.flatMap((change) => merged.get(change) ?? []),
  }
}
