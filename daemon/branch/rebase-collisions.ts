import type { Change } from '../contract/changeset.ts'
import type { Dir, Disk } from '../lib/disk.ts'
import { errnoOf } from '../lib/errors.ts'
import { conflictOf } from './conflict.ts'
import { splitPath } from './journal/format.ts'
import type { Collision } from './rebase-plan.ts'

/**
 * Every change that the commit of a branch would refuse because the base is no longer what the branch was forked from.
 * `since` is the moment after which a path of the base is somebody else's work.
 */
export function findCollisions(
  disk: Disk,
  bases: readonly string[],
  changes: readonly Change[],
  since: (change: Change) => bigint,
): Collision[] {
  const roots: Dir[] = []
  try {
    for (const path of bases) roots.push(disk.openRoot(path))
    return changes.flatMap((change, index) => {
      const message = collisionOf(disk, roots[change.base], change, since(change))
      return message === null ? [] : [{ index, message }]
    })
  } finally {
    for (const root of roots) disk.close(root)
  }
}

function collisionOf(disk: Disk, root: Dir | undefined, change: Change, forkedAtNs: bigint): string | null {
  // The root of a base is never another node, and its times are the echo of what is in it.
  if (root === undefined || change.path.length === 0) return null
  const { parent, name } = splitPath(change.path)
  let dir: Dir
  try {
    dir = disk.openDir(root, parent)
  } catch (error) {
    const errno = errnoOf(error)
    // What is new may stand in a directory that is new as well; what replaces a node may have others below it.
    if (change.old === null && (errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP')) return null
    if (errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP')
      return 'a directory above it is another one in the base now'
    throw error
  }
  try {
    return conflictOf(change, { stat: disk.stat(dir, name) }, forkedAtNs)
  } finally {
    disk.close(dir)
  }
}
