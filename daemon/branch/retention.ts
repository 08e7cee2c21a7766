import { type Dir, type Disk, nameOf } from '../lib/disk.ts'
import { errnoOf } from '../lib/errors.ts'
import type { TellProgress } from '../lib/progress.ts'
import { parseJournal, type ReadJournal, stateOf } from './journal/reader.ts'
import { journalName } from './journal/writer.ts'
import { readTraces } from './recover.ts'
import { removeStaging } from './staging-area.ts'

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
export function expired(kept: readonly KeptCommit[], retention: Retention, now: number): KeptCommit[] {
  const newestFirst = [...kept].sort((a, b) => (a.at < b.at ? 1 : -1))
  let bytes = 0
  return newestFirst
    .filter(({ at, bytes: size }, index) => {
      bytes += size
      return index >= retention.count || now - Date.parse(at) > retention.ageMs || bytes > retention.bytes
    })
    .reverse()
}

/** Removes reverse changesets that retention does not cover. Their commits stay in the bases and in the audit log. */
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
        ? [{ commit, at: read.begin.at, bytes: sizeOf(disk, journal, read), read }]
        : [],
    )
    const gone = expired(kept, retention, now)
    for (const [done, { commit }] of gone.entries()) {
      tell?.(done, gone.length)
      const read = parseJournal(disk.readFile(journal, nameOf(journalName(commit))))
      if (read.kind === 'read') removeStaging(disk, journal, commit, read.begin.areas)
    }
    return {
      commits: gone.map(({ commit }) => commit),
      bytes: gone.reduce((sum, { bytes }) => sum + bytes, 0),
    }
  } finally {
    disk.close(journal)
  }
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
  if (stat.kind !== 'dir') return stat.size
  if (depth > 256) return 0
  const dir = disk.openDir(parent, name)
  try {
    return disk.list(dir).reduce((sum, child) => sum + sizeBelow(disk, dir, child, depth + 1), 0)
  } finally {
    disk.close(dir)
  }
}
