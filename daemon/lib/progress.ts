// pure

/**
 * How far a piece of work is. `total` is null while nobody can know it: a tree that is walked has no known end. Called
 * often and in the middle of synchronous work, so it must be cheap and must not throw.
 */
export type TellProgress = (done: number, total: number | null) => void
