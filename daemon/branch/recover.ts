import { type Dir, type Disk, NO_NAME, nameOf } from '../lib/disk.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { BaseDirs } from './base-dirs.ts'
import type { Ground } from './commit-apply.ts'
import { finish } from './commit-finish.ts'
import { Witness } from './commit-witness.ts'
import { readChanges } from './journal/changes.ts'
import type { Root } from './journal/format.ts'
import { parseJournal, type ReadJournal, stateOf } from './journal/reader.ts'
import { append, continueJournal, journalName } from './journal/writer.ts'
import { type CommitFate, type CommitTraces, planRecovery, type RecoveryStep } from './recovery-plan.ts'
import { openAreas, openingName, removeLeftovers, removeStaging } from './staging-area.ts'

/** Answers for every commit that left a trace. Idempotent; dying in the middle and running again is the same. */
export function recoverCommits(
  disk: Disk,
  journalPath: string,
  at: string,
  retry: ReadonlySet<string> = new Set(),
): CommitFate[] {
  const journal = disk.openRoot(journalPath)
  try {
    return planRecovery(readTraces(disk, journal), retry).map((step) => perform(disk, journal, step, at))
  } finally {
    disk.close(journal)
  }
}

const TRACE = /^(c[0-9a-z]{4,40})\.(log|log\.new|open|changes)$/

/** Files of other names are none of ours and stay. */
export function readTraces(disk: Disk, journal: Dir): CommitTraces[] {
  const found = new Map<string, Set<string>>()
  for (const name of disk.list(journal)) {
    const [, commit, suffix] = TRACE.exec(name.toString('latin1')) ?? []
    if (commit === undefined || suffix === undefined) continue
    found.set(commit, (found.get(commit) ?? new Set()).add(suffix))
  }
  return [...found]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([commit, suffixes]) => ({
      commit,
      journal: suffixes.has('log') ? parseJournal(disk.readFile(journal, nameOf(journalName(commit)))) : null,
      leftovers: suffixes.size > (suffixes.has('log') ? 1 : 0),
    }))
}

function perform(disk: Disk, journal: Dir, step: RecoveryStep, at: string): CommitFate {
  switch (step.kind) {
    case 'show':
      return fateOf(step.commit, step.branch, 'stuck', null, step.reason, false)
    case 'sweep': {
      const left = leftBy(() => removeLeftovers(disk, journal, step.commit))
      return fateOf(
        step.commit,
        null,
        'swept',
        null,
        `it had not been decided; the base is the old one${left}`,
      )
    }
    case 'clear': {
      const left = leftBy(() => removeStaging(disk, journal, step.commit, step.journal.begin.areas))
      return fateOf(
        step.commit,
        step.branch,
        'undone',
        step.journal,
        `it was undone; the base is the old one${left}`,
      )
    }
    case 'tidy':
      return tidy(disk, journal, step.journal)
    case 'finish':
      return goOn(disk, journal, step.journal, at)
  }
}

/**
 * What became of the commit is known: a disk that does not let go of what is left over must not keep all other commits, and
 * the whole store, from coming up. Its records go last, so the next start tries again.
 */
function leftBy(remove: () => void): string {
  try {
    remove()
    return ''
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return `, but what is left of it cannot be removed: ${error instanceof Error ? error.message : error}`
  }
}

function fateOf(
  commit: string,
  branch: string | null,
  fate: CommitFate['fate'],
  journal: ReadJournal | null,
  reason: string,
  fresh = true,
): CommitFate {
  const { digest = null, at = null, part = false, reverts = null } = journal?.begin ?? {}
  return { commit, branch, fate, digest, at, part, reverts, reason, fresh }
}

function tidy(disk: Disk, journal: Dir, read: ReadJournal): CommitFate {
  const { commit, branch } = read.begin
  const leftover = disk.stat(journal, openingName(commit)) !== null
  const left = leftBy(() => {
    if (leftover) disk.unlink(journal, openingName(commit))
  })
  return fateOf(commit, branch, 'committed', read, `it had been committed${left}`, leftover)
}

/** J3 and J5: the same steps as in the commit itself, from wherever it stopped. */
function goOn(disk: Disk, journal: Dir, read: ReadJournal, at: string): CommitFate {
  const { begin } = read
  let ground: Ground | undefined
  try {
    const roots = begin.roots.map((root) => openSame(disk, root))
    ground = {
      disk,
      dirs: new BaseDirs(disk, roots),
      areas: openAreas(disk, journal, begin.areas, begin.commit, 'open'),
      witness: new Witness(disk, () => readChanges(disk, journal, begin.commit)),
    }
    let end = continueJournal(read)
    if (read.outcome.length > 0) end = append(disk, journal, end, { kind: 'retried', at })
    failpoint('recover.opened')
    finish(
      ground,
      journal,
      { operations: read.operations, end },
      { commit: begin.commit, branch: begin.branch, at, areas: begin.areas, warnings: [] },
    )
    return fateOf(
      begin.commit,
      begin.branch,
      'committed',
      read,
      'it was decided before the restart and has been finished',
    )
  } catch (error) {
    return failed(disk, journal, read, error)
  } finally {
    for (const area of ground?.areas ?? []) disk.close(area)
    ground?.dirs.close()
  }
}

/** Device numbers are others after a boot; what the filesystem is stays. */
function openSame(disk: Disk, { path, ino, filesystemId }: Root): Dir {
  const root = disk.openRoot(path)
  const now = disk.filesystemOf(root)
  const elsewhere = filesystemId !== undefined && now !== undefined && now !== filesystemId
  if (!elsewhere && disk.stat(root, NO_NAME)?.ino === ino) return root
  disk.close(root)
  const what = elsewhere ? 'on another filesystem' : 'another directory'
  throw new PuzzledError('stuck', `"${path}" is ${what} than when the commit was decided`)
}

function failed(disk: Disk, journal: Dir, { begin }: ReadJournal, error: unknown): CommitFate {
  // Not an answer of a filesystem but a defect or the end of the process: nobody may take it for one.
  if (!(error instanceof PuzzledError) && errnoOf(error) === undefined) throw error
  const reason = error instanceof Error ? error.message : String(error)
  const undone = isUndone(disk, journal, begin.commit)
  return {
    ...fateOf(begin.commit, begin.branch, undone ? 'undone' : 'stuck', null, reason),
    digest: begin.digest,
    at: begin.at,
    part: begin.part,
    reverts: begin.reverts,
  }
}

/** The journal goes last: where it is gone, or says so itself, the old tree is back. */
function isUndone(disk: Disk, journal: Dir, commit: string): boolean {
  const name = nameOf(journalName(commit))
  if (disk.stat(journal, name) === null) return true
  const read = parseJournal(disk.readFile(journal, name))
  return read.kind === 'read' && stateOf(read) === 'undone'
}
