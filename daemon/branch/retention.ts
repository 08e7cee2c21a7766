import { type Dir, type Disk, nameOf } from '../lib/disk.ts'
import { errnoOf } from '../lib/errors.ts'
import type { TellProgress } from '../lib/progress.ts'
import type { Area } from './journal/format.ts'
import { type ReadJournal, stateOf } from './journal/reader.ts'
import { journalName } from './journal/writer.ts'
import { readTraces } from './recover.ts'
import { isAway, removeRecords, removeStaging } from './staging-area.ts'

/** How much of the past is kept so that it can be reverted. Whatever limit is reached first counts. */
export interface Retention {
  count: number
  ageMs: number
  bytes: number
}

export const DEFAULT_RETENTION: Retention = { count: 100, ageMs: 30 * 24 * 3600 * 1000, bytes: 10 * 2 ** 30 }

export interface KeptCommit {
  commit: string
  at: string
  bytes: number
}

export interface Collected {
  commits: readonly string[]
  bytes: number
}

/** Pure: which commits go, oldest first. Those that are not finished are never in the list. */
export function expired<Kept extends KeptCommit>(
  kept: readonly Kept[],
  retention: Retention,
  now: number,
): Kept[] {
  const newestFirst = [...kept].sort((a, b) => (a.at < b.at ? 1 : -1))
  let bytes = 0
  return newestFirst
    .filter(({ at, bytes: size }, index) => {
      bytes += size
      return index >= retention.count || now - Date.parse(at) > retention.ageMs || bytes > retention.bytes
    })
    .reverse()
}

/**
 * Removes reverse changesets that retention does not cover. Their commits stay in the bases and in the audit log. One that
 * cannot be removed now (its filesystem is read-only, or not mounted) keeps its records for another time, and the others go.
 */
export function collectCommits(
  disk: Disk,
  journalPath: string,
  retention: Retention,
  now: number,
  tell?: TellProgress,
): Collected {
  const journal = disk.openRoot(journalPath)
  try {
    const kept = readTraces(disk, journal).flatMap(({ commit, journal: read }) =>
      read?.kind === 'read' && stateOf(read) === 'done'
        ? [{ commit, at: read.begin.at, bytes: sizeOf(disk, journal, read), areas: read.begin.areas }]
        : [],
    )
    const due = expired(kept, retention, now)
    const gone = due.filter(({ commit, areas }, done) => {
      tell?.(done, due.length)
      return isRemoved(disk, journal, commit, areas)
    })
    forgetLost(disk, journal, due, retention.count)
    return {
      commits: gone.map(({ commit }) => commit),
      bytes: gone.reduce((sum, { bytes }) => sum + bytes, 0),
    }
  } finally {
    disk.close(journal)
  }
}

function isRemoved(disk: Disk, journal: Dir, commit: string, areas: readonly Area[]): boolean {
  try {
    removeStaging(disk, journal, commit, areas)
    return true
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

/** Filesystems that never come back must not fill the journal: of what is on those, the oldest is given up. */
function forgetLost(
  disk: Disk,
  journal: Dir,
  oldestFirst: readonly { commit: string; areas: readonly Area[] }[],
  count: number,
): void {
  const lost = oldestFirst.filter(
    ({ commit, areas }) =>
      disk.stat(journal, nameOf(journalName(commit))) !== null && areas.some((area) => isAway(disk, area)),
  )
  for (const { commit } of lost.slice(0, Math.max(0, lost.length - count)))
    removeRecords(disk, journal, commit)
}

/** What the old versions and the records of one commit take up. */
function sizeOf(disk: Disk, journal: Dir, { begin }: ReadJournal): number {
  let bytes = 0
  for (const suffix of ['log', 'changes'])
    bytes += disk.stat(journal, nameOf(`${begin.commit}.${suffix}`))?.size ?? 0
  for (const area of begin.areas) bytes += treeSize(disk, area.path, nameOf(begin.commit))
  return bytes
}

export function treeSize(disk: Disk, path: string, name: Uint8Array): number {
  let parent: Dir
  try {
    parent = disk.openRoot(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return 0
    throw error
  }
  try {
    return sizeBelow(disk, parent, name)
  } finally {
    disk.close(parent)
  }
}

/** One descriptor per level; a level that is deeper than any reviewer would follow is not counted. */
function sizeBelow(disk: Disk, parent: Dir, name: Uint8Array, depth = 0): number {
  const stat = disk.stat(parent, name)
  if (stat === null) return 0
  if (stat.kind !== 'dir') return stat.allocated
  if (depth > 256) return 0
  const dir = disk.openDir(parent, name)
  try {
    return disk.list(dir).reduce((sum, child) => sum + sizeBelow(disk, dir, child, depth + 1), 0)
  } finally {
    disk.close(dir)
  }
}
