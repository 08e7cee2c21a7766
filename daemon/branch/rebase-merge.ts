import { hash } from 'node:crypto'
import type { Change, NodeState } from '../contract/changeset.ts'
import type { Disk } from '../lib/disk.ts'
import { mergeText } from '../lib/text-merge.ts'
import type { SourceFile, Sources } from './commit-context.ts'
import { tryOpen } from './commit-sources.ts'
import { sameXattrs } from './conflict.ts'
import { splitPath } from './journal/format.ts'
import { plainChange } from './packed-change.ts'
import { type Ancestor, findAncestors, MERGE_LIMIT, readExactly } from './rebase-ancestor.ts'
import type { Collision, MergedFile } from './rebase-plan.ts'

/** Whether lines could decide at all: one plain file on both sides, under this one name. */
const isMergeable = ({ old, new: state, hardlink, identity, findings }: Change): boolean =>
  old?.type === 'file' &&
  state?.type === 'file' &&
  hardlink === undefined &&
  identity?.nlink === 1 &&
  findings.length === 0

/** What merging needs beside the changes. */
export interface MergeGround {
  journal: string
  bases: readonly string[]
  layers: Sources
  since: (change: Change) => bigint
  agentEndedNs: bigint | null
  /** Must-sentence 7: what the requester could not read in the base must not come into a file of theirs. */
  mayRead: (base: string, path: Uint8Array) => boolean
}

/** All merged files of one rebase together: they are held in memory. */
const TOTAL_LIMIT = 64 << 20

/** The same collisions: those whose lines fit together with the merged file, the others with the reason. */
export function mergeCollisions(
  disk: Disk,
  ground: MergeGround,
  changes: readonly Change[],
  collisions: readonly Collision[],
): Collision[] {
  const wanted = collisions.flatMap(({ index }) => {
    const change = changes[index]
    return change !== undefined && isMergeable(change) ? [{ change, sinceNs: ground.since(change) }] : []
  })
  if (wanted.length === 0) return [...collisions]
  const ancestors = findAncestors(disk, ground.journal, ground.bases, wanted, ground.agentEndedNs)
  let total = 0
  return collisions.map((collision) => {
    const change = changes[collision.index]
    if (change === undefined || !isMergeable(change)) return collision
    const ancestor = ancestors.get(change) ?? 'no version from the time of the fork is kept to merge with'
    const merged = typeof ancestor === 'string' ? ancestor : mergeFile(disk, ground, change, ancestor)
    if (typeof merged === 'string') return { ...collision, message: `${collision.message}; ${merged}` }
    total += merged.bytes.length
    return total > TOTAL_LIMIT ? collision : { ...collision, merged }
  })
}

/** The file that holds what both sides did since the ancestor, or why there is none. */
function mergeFile(
  disk: Disk,
  { bases, layers, mayRead }: MergeGround,
  change: Change,
  ancestor: Ancestor,
): MergedFile | string {
  const { old: theirs, new: ours } = change
  if (theirs === null || ours === null) return 'it is not a file on both sides'
  if (theirs.size > MERGE_LIMIT || ours.size > MERGE_LIMIT) return 'it is too large to be merged by lines'
  const root = bases[change.base] ?? ''
  if (!mayRead(root, change.path)) return 'whoever asked for the branch may not read it in the base'
  const mine = readExactly(disk, layers.find(change, ours), ours)
  const base = readExactly(disk, sourceIn(disk, root, change.path), theirs)
  if (mine === null || base === null) return 'it is being written to'
  const merged = mergeText(ancestor.bytes, mine, base)
  switch (merged.kind) {
    case 'overlap':
      return `both sides changed it at line ${merged.line} of the version that they have in common`
    case 'binary':
      return 'it is not text'
    case 'too-different':
      return 'the sides differ too much to be merged by lines'
  }
  const state = mergeState(ancestor.state, ours, theirs, merged.bytes)
  if (state === null) return 'its mode, owner or attributes were changed on both sides'
  return {
    change: { ...plainChange(change), kind: 'modify', new: state },
    bytes: merged.bytes,
    commit: ancestor.commit,
  }
}

/** A file of a base; null when it is not there. */
export function sourceIn(disk: Disk, root: string, path: Uint8Array): SourceFile | null {
  const base = disk.openRoot(root)
  try {
    const { parent, name } = splitPath(path)
    const dir = tryOpen(disk, base, parent)
    if (dir === 'absent' || dir === 'masked') return null
    return { dir, name, release: () => disk.close(dir) }
  } finally {
    disk.close(base)
  }
}

/** Each property as one side left it and the other changed it; null where both changed it differently. */
function mergeState(before: NodeState, ours: NodeState, theirs: NodeState, bytes: Buffer): NodeState | null {
  const mode = pick(before.mode, ours.mode, theirs.mode)
  const uid = pick(before.uid, ours.uid, theirs.uid)
  const gid = pick(before.gid, ours.gid, theirs.gid)
  const xattrs = pick(before.xattrs, ours.xattrs, theirs.xattrs, sameXattrs)
  if (mode === null || uid === null || gid === null || xattrs === null) return null
  const [mtimeNs = 0n] = [ours.mtimeNs, theirs.mtimeNs].sort((a, b) => (a < b ? 1 : -1))
  const content = { size: bytes.length, sha256: hash('sha256', bytes, 'hex') }
  return { type: 'file', mode, uid, gid, mtimeNs, xattrs, ...content }
}

function pick<T>(before: T, ours: T, theirs: T, same: (a: T, b: T) => boolean = Object.is): T | null {
  if (same(ours, before) || same(ours, theirs)) return theirs
  return same(theirs, before) ? ours : null
}
