// pure
import { encodePath } from '../contract/bytes.ts'
import { type BaseIdentity, type Change, type NodeState, sameMetadata } from '../contract/changeset.ts'
import type { ConflictEntry } from '../contract/engine.ts'
import type { DiskStat, DiskXattr } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'

/** What the base holds now, read under its lock. `state` is there when there is no identity to compare with. */
export interface Found {
  stat: DiskStat | null
  /** Filled in only when the identity cannot decide. */
  sha256?: string
  link?: Uint8Array
  xattrs?: readonly DiskXattr[]
}

/**
 * Why this change would overwrite somebody's work, or null. `forkedAtNs` is when the branch began: what changed later
 * in the base was not seen by the agent, even if the reviewer's diff was made after it.
 */
export function conflictOf(change: Change, found: Found, forkedAtNs: bigint | null): string | null {
  const { stat } = found
  if (change.old === null)
    return stat === null ? null : 'it exists in the base now; the branch adds it as new'
  if (stat === null) return 'it is gone from the base'
  if (stat.kind !== change.old.type)
    return `it is a ${stat.kind} in the base now, it was a ${change.old.type}`
  if (change.old.type !== 'dir' && forkedAtNs !== null && stat.ctimeNs > forkedAtNs)
    return 'it was changed in the base after the fork'
  if (change.identity === undefined) return differingState(change.old, found)
  return (
    differingIdentity(change.identity, stat, change.old.type === 'dir') ??
    (change.old.type === 'dir' ? differingDirectory(change, change.old, stat, forkedAtNs) : null)
  )
}

/**
 * A directory's times change with its entries, so a mode that differs in a directory that was changed after the fork may
 * be the branch's or somebody else's: nobody can tell, and nobody's is set back.
 */
function differingDirectory(
  change: Change,
  old: NodeState,
  now: DiskStat,
  forkedAtNs: bigint | null,
): string | null {
  if (old.mode !== now.mode || old.uid !== now.uid || old.gid !== now.gid)
    return 'its mode or owner was changed in the base since it was reviewed'
  const late = forkedAtNs !== null && now.ctimeNs > forkedAtNs
  return late && change.new?.type === 'dir' && !sameMetadata(old, change.new)
    ? 'it was changed in the base after the fork, and its mode, owner or attributes differ'
    : null
}

/** A directory's times and link count change with its entries, which are compared by themselves. */
function differingIdentity(seen: BaseIdentity, now: DiskStat, directory: boolean): string | null {
  if (seen.dev !== now.dev || seen.ino !== now.ino) return 'another file has its place in the base'
  if (directory) return null
  if (seen.size !== now.size || seen.mtimeNs !== now.mtimeNs) return 'its content was changed in the base'
  if (seen.ctimeNs !== now.ctimeNs) return 'it was changed in the base since it was reviewed'
  return null
}

function differingState(old: NodeState, found: Found): string | null {
  const { stat, sha256, link, xattrs } = found
  if (stat === null) return 'it is gone from the base'
  if (old.type === 'file' && (old.size !== stat.size || old.sha256 !== sha256))
    return 'its content was changed in the base'
  if (old.type === 'symlink' && !sameBytes(old.link, link)) return 'it points elsewhere in the base now'
  if (old.uid !== stat.uid || old.gid !== stat.gid) return 'its owner was changed in the base'
  if (old.type !== 'symlink' && old.mode !== stat.mode) return 'its mode was changed in the base'
  if (xattrs !== undefined && !sameXattrs(old.xattrs, xattrs))
    return 'its attributes were changed in the base'
  return null
}

const sameBytes = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean =>
  a !== undefined && b !== undefined && Buffer.compare(a, b) === 0

export const sameXattrs = (a: readonly DiskXattr[], b: readonly DiskXattr[]): boolean =>
  a.length === b.length &&
  a.every((entry, index) => entry.name === b[index]?.name && sameBytes(entry.value, b[index]?.value))

/** What is written by a descriptor goes with the inode, out of sight: the writer would lose it. */
export const OPEN_FOR_WRITING = 'another program has it open for writing'

/** The most that a person wants to read; the number of the rest is in the message. */
export const MAX_CONFLICTS = 200

export function conflictError(conflicts: readonly { path: Uint8Array; message: string }[]): PuzzledError {
  const [first] = conflicts
  const shown = first === undefined ? '' : `"${encodePath(first.path).path}": ${first.message}`
  const more = conflicts.length > 1 ? ` (and ${conflicts.length - 1} more)` : ''
  const entries: ConflictEntry[] = conflicts
    .slice(0, MAX_CONFLICTS)
    .map(({ path, message }) => ({ ...encodePath(path), message }))
  return new PuzzledError('conflict', `The base changed: ${shown}${more}`, {
    hint: 'Nothing was changed. Rebase the branch, take one side, or drop the path.',
    data: { conflicts: entries, total: conflicts.length },
  })
}
