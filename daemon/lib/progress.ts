// pure

/**
 * How far a piece of work is. `total` is null while nobody can know it: a tree that is walked has no known end. Called
 * often and in the middle of synchronous work, so it must be cheap and must not throw.
 */
export type TellProgress = (done: number, total: number | null) => void

/** Tells the first of each piece of work and then at most one per interval: nobody could draw more. */
export function everySoOften(tell: TellProgress, intervalMs: number, now: () => number): TellProgress {
  let told: { at: number; of: number | null } | undefined
  return (done, total) => {
    const at = now()
    if (told?.of === total && at - told.at < intervalMs) return
    told = { at, of: total }
    tell(done, total)
  }
}
