import { type Disk, NO_NAME } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { BaseDirs } from './base-dirs.ts'
import type { CommitJob } from './commit-context.ts'
import type { Surveyed } from './commit-survey.ts'
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

/** The journal's record of one operation: with it alone recovery can go forward or back. */
export function recordOf(
  disk: Disk,
  { operation, parent, target }: Surveyed,
  dir: number,
  area: number,
  ino: number,
): Operation {
  const at = { base: operation.base, path: textOf(operation.path), parent }
  const staged = { area, slot: operation.slot }
  const root = operation.tree[0]?.state
  const time = root?.type === 'dir' ? String(root.mtimeNs) : null
  if (operation.kind === 'place') return { kind: 'place', ...at, ...staged, ino, time }
  if (target === null) throw new PuzzledError('conflict', `"${at.path.path}" is gone from the base`)
  const old = {
    ino: target.ino,
    dir: target.kind === 'dir',
    size: target.size,
    mtime: String(target.mtimeNs),
  }
  if (operation.kind === 'swap') return { kind: 'swap', ...at, ...staged, ino, time, old }
  if (operation.kind === 'remove') return { kind: 'remove', ...at, ...staged, old }
  const { name } = splitPath(operation.path)
  const before = toMetaText({ ...target, xattrs: disk.xattrs(dir, name) })
  const after = operation.state === null ? before : toMetaText(operation.state)
  return { kind: 'adjust', ...at, ino: target.ino, before, after }
}

export function beginOf(disk: Disk, job: CommitJob, areas: readonly Area[], bases: BaseDirs): Begin {
  const roots: Root[] = job.bases.map(({ path }, index) => {
    const stat = disk.stat(bases.root(index), NO_NAME)
    return { path, dev: stat?.dev ?? 0, ino: stat?.ino ?? 0 }
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
