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

/** Times are those of this run, and the large file is random: everything else is the same in each ground. */
export const comparable = (tree: string): string =>
  tree.replace(/ \d{19}/g, '').replace(/(\/large .*) [0-9a-f]{64}/g, '$1')
