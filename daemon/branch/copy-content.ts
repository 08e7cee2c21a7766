import { encodePath } from '../contract/bytes.ts'
import type { Change, NodeState } from '../contract/changeset.ts'
import type { Copied, Dir, Disk, DiskMeta } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Sources } from './commit-context.ts'

/** Where the content of a change comes from, and the place that gets it. */
export interface ContentCopy {
  sources: Sources
  dir: Dir
  name: Uint8Array
  /** What the copy gets at once; without it the copy is private. */
  meta?: DiskMeta
}

/** Copies the new content of a file. What is copied is what was reviewed: its digest is taken on the way. */
export function copyContent(
  disk: Disk,
  change: Change,
  state: NodeState,
  { sources, dir, name, meta }: ContentCopy,
): Copied {
  const source = sources.find(change, state)
  if (source === null) throw changed(change, 'its content is not in the layers any more')
  try {
    const copied = disk.copyFile(source.dir, source.name, dir, name, meta)
    if (copied.sha256 !== state.sha256) throw changed(change, 'its content is another one now')
    return copied
  } finally {
    source.release()
  }
}

const changed = (change: Change, why: string): PuzzledError =>
  new PuzzledError('changed-since-review', `"${encodePath(change.path).path}": ${why}`, {
    hint: 'Nothing was changed. Review the branch again.',
    data: { ...encodePath(change.path) },
  })
