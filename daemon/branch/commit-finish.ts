import type { ErrorCode } from '../contract/errors.ts'
import { KernelError } from '../kernel/ffi.ts'
import { type Dir, NO_NAME } from '../lib/disk.ts'
import { combineErrors, errnoOf, PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { applyAll, type Ground, undoAll } from './commit-apply.ts'
import { type Area, type Operation, pathOf, splitPath, textOf } from './journal/format.ts'
import { append, type JournalEnd } from './journal/writer.ts'
import { openingName, removeStaging } from './staging-area.ts'

export interface Finish {
  commit: string
  branch: string
  at: string
  areas: readonly Area[]
  warnings: readonly { path: string; message: string }[]
}

/**
 * From a durable INTENT to a durable DONE, or back to the old tree. The commit calls it, and so does recovery: after
 * INTENT there is only one way.
 */
export function finish(
  ground: Ground,
  journal: Dir,
  written: { operations: Iterable<Operation>; end: JournalEnd },
  facts: Finish,
): void {
  const { disk } = ground
  const { operations, end } = written
  try {
    applyAll(ground, operations)
    stillTheSame(ground, operations)
    failpoint('commit.applied')
    syncAll(ground, operations)
    failpoint('commit.applied-synced')
  } catch (error) {
    throw takeBack(ground, journal, written, facts, error)
  }
  // J7: nobody hears "committed" before this line is durable, and after it nobody undoes.
  try {
    append(disk, journal, end, { kind: 'done', at: facts.at, warnings: facts.warnings })
  } catch (cause) {
    throw new PuzzledError('stuck', `Commit ${facts.commit} is applied, but DONE cannot be recorded`, {
      cause,
      hint: 'The new tree is in place. When the disk of the store is well again, restart the daemon: recovery finishes it.',
    })
  }
  forgetOpening(ground, journal, facts.commit)
  failpoint('commit.cleaned')
}

/** The commit is done: that a record of its beginning cannot be removed is no failure of it. The next start tries again. */
function forgetOpening({ disk }: Ground, journal: Dir, commit: string): void {
  try {
    if (disk.stat(journal, openingName(commit)) !== null) disk.unlink(journal, openingName(commit))
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
  }
}

/** J3: where the filesystem refuses to go forward the old tree comes back; if even that fails, a person is needed. */
function takeBack(
  ground: Ground,
  journal: Dir,
  written: { operations: Iterable<Operation>; end: JournalEnd },
  facts: Finish,
  error: unknown,
): Error {
  const { disk } = ground
  const reason = error instanceof Error ? error.message : String(error)
  const failures = undoAll(ground, written.operations)
  if (failures.length === 0) {
    try {
      syncAll(ground, written.operations)
      failpoint('undo.synced')
      append(disk, journal, written.end, { kind: 'undone', at: facts.at, reason })
    } catch (cause) {
      failures.push(cause)
    }
  }
  if (failures.length > 0) return stuck(ground, journal, written.end, facts, reason, failures)
  try {
    removeStaging(disk, journal, facts.commit, facts.areas)
  } catch (cause) {
    // The base is old and that is durable; what is left over is swept at the next start.
    return asCommitError(error, combineErrors(reason, [error, cause]))
  }
  return asCommitError(error)
}

function stuck(
  { disk }: Ground,
  journal: Dir,
  end: JournalEnd,
  facts: Finish,
  reason: string,
  failures: unknown[],
): PuzzledError {
  try {
    append(disk, journal, end, { kind: 'stuck', at: facts.at, reason })
  } catch (error) {
    failures.push(error)
  }
  return new PuzzledError('stuck', `Commit ${facts.commit} can neither be finished nor undone: ${reason}`, {
    cause: combineErrors('Undoing failed', failures),
    hint: 'Nothing was removed: see docs/operations.md, "A commit is stuck".',
    data: { commit: facts.commit, branch: facts.branch },
  })
}

/** A directory that was moved away during the commit took our files with it: that is a refusal, not a success. */
function stillTheSame({ dirs }: Ground, operations: Iterable<Operation>): void {
  const seen = new Set<string>()
  for (const operation of operations) {
    if (operation.kind === 'adjust') continue
    const { parent } = splitPath(pathOf(operation))
    const key = `${operation.base}:${parent.toString('latin1')}`
    if (seen.has(key)) continue
    seen.add(key)
    if (!dirs.isStill(operation.base, parent, operation.parent))
      throw new PuzzledError('conflict', `"${textOf(parent).path}" was moved away during the commit`)
  }
}

/** Every filesystem that an operation touched, once. */
function syncAll({ disk, dirs, areas }: Ground, operations: Iterable<Operation>): void {
  const synced = new Set<number>()
  const sync = (dir: Dir): void => {
    const dev = disk.stat(dir, NO_NAME)?.dev ?? 0
    if (synced.has(dev)) return
    synced.add(dev)
    disk.syncfs(dir)
  }
  for (const area of areas) sync(area)
  for (const operation of operations)
    if (operation.kind === 'adjust')
      sync(dirs.open(operation.base, splitPath(pathOf(operation)).parent, operation.parent).dir)
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: 'no-space',
  EDQUOT: 'no-space',
  EROFS: 'not-writable',
  EACCES: 'not-writable',
  EPERM: 'not-writable',
  EEXIST: 'conflict',
  ENOTEMPTY: 'conflict',
  ELOOP: 'conflict',
  ENOTDIR: 'conflict',
  ENOENT: 'conflict',
}

const HINTS: Readonly<Record<string, string>> = {
  EXDEV:
    'Nothing was changed. A file belongs to another project (quota) than its directory; give it that of its directory.',
}

/** What was a link when it was looked at is none any more: the base changes under the commit. */
const isNoLink = (error: unknown): boolean =>
  error instanceof KernelError && error.call === 'readlinkat' && error.errnoName === 'EINVAL'

/** What a filesystem says, as an error of the table. */
export function asCommitError(error: unknown, cause: unknown = error): Error {
  if (error instanceof PuzzledError) return error
  const errno = errnoOf(error)
  // Not from the filesystem: a defect, or a test that cut the power.
  if (errno === undefined) return error instanceof Error ? error : new Error(String(error))
  const message = error instanceof Error ? error.message : String(error)
  const code = isNoLink(error) ? 'conflict' : (CODES[errno] ?? 'kernel-refused')
  return new PuzzledError(code, `The commit was refused: ${message}`, {
    cause,
    hint: HINTS[errno] ?? 'Nothing was changed; the branch is as it was.',
  })
}
