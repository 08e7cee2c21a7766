import type { Change } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { changeLeaf } from './changeset.ts'
import { canonicalChange, Reader, readChange } from './changeset-codec.ts'
import type { Promised } from './diff-files.ts'
import { type DiffJob, type DiffMessage, runDiff } from './diff-job.ts'
import { landingKey } from './own-landings.ts'

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
  const wanted = part ? new Set(changes.map((change) => leafOf(change))) : null
  const promised = new Map(changes.map((change) => [landingKey(change.base, change.path), change]))
  const known: Promised = (base, path) => promised.get(landingKey(base, path))
  let digest = ''
  const receive = (message: DiffMessage): void => {
    if (message.kind === 'changes' && wanted !== null)
      for (const reader = new Reader(message.bytes); !reader.done; ) wanted.delete(leafOf(readChange(reader)))
    if (message.kind === 'done') digest = message.digest
    if (message.kind === 'failed')
      throw new PuzzledError(
        'changed-since-review',
        `The branch cannot be read again: ${message.error.message}`,
      )
  }
  runDiff(diff, receive, known)
  const approved = wanted === null ? digest === filesDigest : wanted.size === 0
  if (!approved)
    throw new PuzzledError('changed-since-review', 'The branch is not what was reviewed any more', {
      hint: 'Nothing was changed. Review it again.',
      data: { approved: filesDigest, found: digest },
    })
}

const leafOf = (change: Change): string => changeLeaf(canonicalChange(change)).toString('hex')
