/** Every failpoint between the first and the last durable step of a commit, in order. */
export const COMMIT_POINTS = [
  'commit.opened',
  'commit.staged-one',
  'commit.staged',
  'commit.staged-synced',
  'journal.pending',
  'commit.before-intent',
  'journal.intent-renamed',
  'journal.intent',
  'commit.after-intent',
  'commit.applied-place',
  'commit.applied-swap',
  'commit.applied-remove',
  'commit.applied-adjust',
  'commit.applied',
  'commit.applied-synced',
  'journal.done-written',
  'journal.done',
  'commit.cleaned',
] as const

/** Times are those of this run: everything else is the same in each ground. Only the column of times goes, not what looks like one. */
export const comparable = (tree: string): string => tree.replace(/( \d+:\d+) \d{19}/g, '$1')
