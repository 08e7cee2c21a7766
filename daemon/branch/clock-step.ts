// pure
import type { ClockMark } from '../contract/branch.ts'

const NS_PER_MS = 1_000_000n
/** Readings are this exact at best. */
const NOTHING_MS = 100

const nsOf = (ms: number): bigint => BigInt(Math.round(ms)) * NS_PER_MS

/**
 * The earliest time that something can bear which was changed after `at`. Times of files come from a clock that can be set
 * back: by so much is what was changed afterwards older than it looks. Of what happened in earlier boots than this one only
 * what is newer than `at` is known; everything of this boot is newer than its beginning. Files that were changed shortly
 * before `at` are then taken for later ones as well: a conflict too many, never one too few.
 */
export function earliestAfter(at: bigint, then: ClockMark | undefined, now: ClockMark): bigint {
  if (then === undefined) return at
  if (then.boot !== now.boot) {
    const booted = nsOf(now.bootedAt)
    return booted < at ? booted : at
  }
  const step = now.bootedAt - then.bootedAt
  return step < -NOTHING_MS ? at + nsOf(step - NOTHING_MS) : at
}

/** Of one branch a later commit has a later time, whatever the clock says: recovery tells them apart by that. */
export function timeOfCommit(now: Date, before: string | undefined): string {
  const at = now.toISOString()
  return before === undefined || at > before ? at : new Date(Date.parse(before) + 1).toISOString()
}
