import { type Dir, type Disk, NO_NAME } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { BaseDirs } from './base-dirs.ts'
import type { CommitJob } from './commit-context.ts'
import type { PlannedOperation } from './commit-plan.ts'
import {
  type Area,
  type Begin,
  JOURNAL_VERSION,
  type Operation,
  type Root,
  splitPath,
  textOf,
  toMetaText,
} from './journal/format.ts'
import { filesystemMark } from './same-filesystem.ts'
import type { Standing } from './survey-table.ts'

/** Where an entry was staged; `ino` is 0 for one that only leaves. */
interface Staged {
  area: number
  ino: number
}

/** The journal's record of one operation: with it alone recovery can go forward or back. */
export function entryRecord(
  operation: PlannedOperation,
  parent: number,
  target: Standing | null,
  { area, ino }: Staged,
): Operation {
  const at = { base: operation.base, path: textOf(operation.path), parent }
  const staged = { area, slot: operation.slot }
  const root = operation.tree[0]?.state
  const time = root?.type === 'dir' ? String(root.mtimeNs) : null
  if (operation.kind === 'place') return { kind: 'place', ...at, ...staged, ino, time }
  if (target === null) throw gone(at.path.path)
  const old = { ino: target.ino, dir: target.dir, size: target.size, mtime: String(target.mtimeNs) }
  if (operation.kind === 'swap') return { kind: 'swap', ...at, ...staged, ino, time, old }
  return { kind: 'remove', ...at, ...staged, old }
}

/** The same of a node that stays. It is looked at here: what it is now is what an undo brings back. */
export function adjustRecord(disk: Disk, operation: PlannedOperation, parent: number, dir: Dir): Operation {
  const { name } = splitPath(operation.path)
  const path = textOf(operation.path)
  const target = disk.stat(dir, name)
  if (target === null) throw gone(path.path)
  const before = toMetaText({ ...target, xattrs: disk.xattrs(dir, name) })
  const after = operation.state === null ? before : toMetaText(operation.state)
  return { kind: 'adjust', base: operation.base, path, parent, ino: target.ino, before, after }
}

const gone = (path: string): PuzzledError => new PuzzledError('conflict', `"${path}" is gone from the base`)

export function beginOf(disk: Disk, job: CommitJob, areas: readonly Area[], bases: BaseDirs): Begin {
  const roots: Root[] = job.bases.map(({ path }, index) => {
    const stat = disk.stat(bases.root(index), NO_NAME)
    const mark = filesystemMark(stat?.dev ?? 0, disk.filesystemOf(bases.root(index)))
    return { path, ...mark, ino: stat?.ino ?? 0 }
  })
  return {
    kind: 'begin',
    version: JOURNAL_VERSION,
    commit: job.commit,
    branch: job.branch,
    digest: job.digest,
    part: job.part,
    reverts: job.reverts,
    requester: job.requester.uid,
    at: job.at,
    files: job.changes.length,
    roots,
    areas,
  }
}
