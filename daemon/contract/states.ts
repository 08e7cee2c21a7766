// pure

/** The states of a branch; `branch/lifecycle.ts` holds the table of moves between them. */
export const BRANCH_STATES = [
  'preparing',
  'ready',
  'running',
  'frozen',
  'stopped',
  'reviewing',
  'held',
  'staging',
  'committing',
  'committed',
  'discarding',
  'discarded',
  'commit-stuck',
  'discard-stuck',
] as const

export type BranchState = (typeof BRANCH_STATES)[number]

export const isTerminal = (state: BranchState): boolean => state === 'committed' || state === 'discarded'
