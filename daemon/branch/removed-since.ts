import { type Dir, type Disk, nameOf } from '../lib/disk.ts'
import type { CommitJob } from './commit-context.ts'
import { changesIfKnown } from './journal/changes.ts'
import { parseJournal, stateOf } from './journal/reader.ts'
import { commitOf, journalName } from './journal/writer.ts'

/** By its absolute path, bytes apart: the bases of two branches may lie in one another. */
export function absoluteKey(base: string | undefined, path: Uint8Array): string {
  const root = Buffer.from(base ?? '').toString('latin1')
  return `${root === '/' ? '' : root}/${Buffer.from(path).toString('latin1')}`
}

/**
 * What this changeset would add and another branch's commit has removed since the fork, with that commit. Whoever changed
 * a file that somebody removed meanwhile has it as a new one in the diff: without the journal it would come back without
 * a word. A path that was added after the fork and removed again was never there for this branch. To be called with the
 * bases locked.
 */
export function removedSince(
  disk: Disk,
  journal: Dir,
  { branch, bases, changes, forkedAtNs }: CommitJob,
): ReadonlyMap<string, string> {
  const removed = new Map<string, string>()
  if (forkedAtNs === null) return removed
  const seen = new Set<string>()
  let added: Set<string> | undefined
  for (const commit of finishedSince(disk, journal, forkedAtNs)) {
    const read = parseJournal(disk.readFile(journal, nameOf(journalName(commit))))
    if (read.kind !== 'read' || stateOf(read) !== 'done' || read.begin.branch === branch) continue
    added ??= new Set(
      changes.filter(({ old }) => old === null).map(({ base, path }) => absoluteKey(bases[base]?.path, path)),
    )
    for (const change of changesIfKnown(disk, journal, commit)) {
      const key = absoluteKey(read.begin.roots[change.base]?.path, change.path)
      if (!added.has(key) || seen.has(key)) continue
      seen.add(key)
      if (change.new === null) removed.set(key, commit)
    }
  }
  return removed
}

/** Commits whose record was last written after this moment, in that order: DONE is the last thing that is written. */
function finishedSince(disk: Disk, journal: Dir, sinceNs: bigint): string[] {
  return disk
    .list(journal)
    .flatMap((name) => {
      const commit = commitOf(name.toString('latin1'))
      const at = commit === undefined ? undefined : disk.stat(journal, name)?.mtimeNs
      return commit === undefined || at === undefined || at <= sinceNs ? [] : [{ commit, at }]
    })
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .map(({ commit }) => commit)
}
