import type { Change } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Promised } from './diff-files.ts'
import { type DiffJob, type DiffMessage, runDiff } from './diff-job.ts'
import { canonicalOf, packedChanges } from './packed-change.ts'
import { SortedChanges } from './sorted-changes.ts'

/**
 * Compares the layers once more, after every process of the branch is gone. A whole changeset must have the digest that
 * was approved; of a part, every entry must still be there as it was. New content is not read for
 * this: the caller stages each file of `changes` with its digest checked while it is copied (`Stager`), or lands nothing.
 */
export function requireApproved(
  diff: DiffJob,
  changes: readonly Change[],
  filesDigest: string,
  part: boolean,
): void {
  const reviewed = new SortedChanges(changes)
  const known: Promised = (base, path) => reviewed.find(base, path)
  const isThere = (change: Change): boolean => {
    const before = reviewed.find(change.base, change.path)
    return before !== undefined && canonicalOf(before).equals(canonicalOf(change))
  }
  let found = 0
  let digest = ''
  const receive = (message: DiffMessage): void => {
    if (message.kind === 'changes' && part)
      for (const change of packedChanges(message.bytes)) if (isThere(change)) found++
    if (message.kind === 'done') digest = message.digest
    if (message.kind === 'failed')
      throw new PuzzledError(
        'changed-since-review',
        `The branch cannot be read again: ${message.error.message}`,
      )
  }
  runDiff(diff, receive, known)
  const approved = part ? found === changes.length : digest === filesDigest
  if (!approved)
    throw new PuzzledError('changed-since-review', 'The branch is not what was reviewed any more', {
      hint: 'Nothing was changed. Review it again.',
      data: { approved: filesDigest, found: digest },
    })
}
