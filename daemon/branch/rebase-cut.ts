import { hash } from 'node:crypto'
import type { Change } from '../contract/changeset.ts'
import type { Disk } from '../lib/disk.ts'
import { hunksOf, withHunks } from '../lib/text-hunks.ts'
import type { Sources } from './commit-context.ts'
import { plainChange } from './packed-change.ts'
import { MERGE_LIMIT, readExactly } from './rebase-ancestor.ts'
import { sourceIn } from './rebase-merge.ts'

export interface CutFile {
  change: Change
  bytes: Uint8Array
}

/**
 * The file of the base with the chosen pieces of a change, or why there is none. The pieces are counted again from what
 * base and layers hold, and those must be the contents that the changeset names: whoever chooses pieces chooses among what
 * the agent wrote, and cannot bring content of their own.
 */
export function cutFile(
  disk: Disk,
  { bases, layers }: { bases: readonly string[]; layers: Sources },
  change: Change,
  { hunks: chosen, of }: { hunks: readonly number[]; of: number },
): CutFile | string {
  const { old, new: state, hardlink, findings } = change
  if (old?.type !== 'file' || state?.type !== 'file' || hardlink !== undefined || findings.length > 0)
    return 'it is not one plain file on both sides'
  if (old.size > MERGE_LIMIT || state.size > MERGE_LIMIT) return 'it is too large'
  const before = readExactly(disk, sourceIn(disk, bases[change.base] ?? '', change.path), old)
  if (before === null) return 'the base is another one now'
  const after = readExactly(disk, layers.find(change, state), state)
  if (after === null) return 'the branch is another one now'
  const hunks = hunksOf(before, after)
  if (hunks === null) return 'it is no text that can be compared'
  if (hunks.length !== of) return 'it has other pieces now'
  if (chosen.length === 0 || chosen.some((index) => index >= hunks.length)) return 'there is no such piece'
  const bytes = withHunks(before, hunks, new Set(chosen))
  return {
    change: { ...plainChange(change), new: { ...state, size: bytes.length, sha256: sha256(bytes) } },
    bytes,
  }
}

const sha256 = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex')
