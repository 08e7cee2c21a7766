import type { TellProgress } from '../lib/progress.ts'
import type { Ports } from './ports.ts'

/** The same ports, on behalf of somebody who hears how far long work is: comparing, landing, removing. */
export const telling = (ports: Ports, tell: TellProgress): Ports => ({
  ...ports,
  differ: {
    diff: (record, options) =>
      ports.differ.diff(record, { onProgress: (paths) => tell(paths, null), ...options }),
    select: (...args) => ports.differ.select(...args),
    withRequests: (...args) => ports.differ.withRequests(...args),
    content: (...args) => ports.differ.content(...args),
  },
  committer: {
    commit: (record, changeset, hooks) => ports.committer.commit(record, changeset, { ...hooks, tell }),
    revert: (commit, requester) => ports.committer.revert(commit, requester, tell),
    commits: () => ports.committer.commits(),
  },
  collect: () => ports.collect(tell),
})
