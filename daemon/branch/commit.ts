import { type Dir, type Disk, NO_NAME } from '../lib/disk.ts'
import { combineErrors, errnoOf, PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { BaseDirs } from './base-dirs.ts'
import { requireWritable } from './commit-access.ts'
import type { Ground } from './commit-apply.ts'
import { type Areas, areasOf } from './commit-areas.ts'
import type { CommitContext, CommitJob, JobBase, JobHooks } from './commit-context.ts'
import { asCommitError, finish } from './commit-finish.ts'
import { type CommitPlan, PlanError, planCommit } from './commit-plan.ts'
import { adjustRecord, beginOf, entryRecord } from './commit-record.ts'
import { Stager } from './commit-stage.ts'
import { survey, surveyAgain } from './commit-survey.ts'
import { Witness } from './commit-witness.ts'
import { writeChanges } from './journal/changes.ts'
import { splitPath, textOf } from './journal/format.ts'
import { PackedOperations } from './journal/packed-operations.ts'
import { type JournalEnd, publishIntent, writePending } from './journal/writer.ts'
import { removedSince } from './removed-since.ts'
import { filesystemMark, isSameFilesystem } from './same-filesystem.ts'
import { openAreas, removeLeftovers, withdraw, writeOpening } from './staging-area.ts'
import type { SurveyTable } from './survey-table.ts'

export interface Landed {
  commit: string
  digest: string
  files: number
  warnings: readonly { path: string; message: string }[]
}

/**
 * Lands one changeset. The order is the invariants J1–J7 of docs/journal.md and nothing else: stage, sync, INTENT,
 * rename, sync, DONE. Throws with the old base in place, or as `stuck`.
 */
export async function land(given: CommitContext, job: CommitJob, hooks: JobHooks): Promise<Landed> {
  const { disk } = given
  const { bases, unlock } = openBases(given, job)
  const journal = disk.openRoot(given.journal)
  let ground: Ground | undefined
  try {
    const context = { ...given, removed: removedSince(disk, journal, job) }
    const plan = makePlan(job, bases)
    let surveyed: SurveyTable | undefined = survey(context, job, plan, bases)
    requireWritable(context, job, plan, bases)
    let written: { operations: PackedOperations; end: JournalEnd }
    const areas = areasOf(context, job, plan, bases)
    try {
      writeOpening(disk, journal, job.commit, areas.list)
      ground = {
        disk,
        dirs: bases,
        areas: openAreas(disk, journal, areas.list, job.commit, 'create'),
        witness: new Witness(disk, () => job.changes),
      }
      written = await stageAndRecord(context, job, { plan, surveyed, areas }, ground, journal)
      surveyed = undefined
      await hooks.beforeIntent(job.commit)
      failpoint('commit.before-intent')
      // J1: the last look at the base, as late as it can be.
      surveyAgain(context, job, plan, bases)
      publishIntent(disk, journal, job.commit)
      await hooks.afterIntent(job.commit)
    } catch (error) {
      throw abandon(context, job, journal, error)
    }
    failpoint('commit.after-intent')
    finish(ground, journal, written, {
      commit: job.commit,
      branch: job.branch,
      at: job.at,
      areas: areas.list,
      warnings: plan.warnings,
    })
    return { commit: job.commit, digest: job.digest, files: job.changes.length, warnings: plan.warnings }
  } finally {
    for (const area of ground?.areas ?? []) disk.close(area)
    bases.close()
    disk.close(journal)
    unlock()
  }
}

/** Nothing was applied: INTENT and what was staged go, and the error is the one that stopped us. */
function abandon({ disk }: CommitContext, job: CommitJob, journal: Dir, error: unknown): Error {
  try {
    withdraw(disk, journal, job.commit)
  } catch (cause) {
    return new PuzzledError('stuck', `Commit ${job.commit} was neither decided nor withdrawn`, {
      cause: combineErrors('Withdrawing failed', [error, cause]),
      hint: 'Nothing was applied. When the disk of the store is well again, restart the daemon: recovery decides.',
    })
  }
  try {
    removeLeftovers(disk, journal, job.commit)
  } catch (cause) {
    // The base is old; what is left over is swept at the next start.
    return asCommitError(error, combineErrors('Cleaning up failed', [error, cause]))
  }
  return asCommitError(error)
}

function openBases({ disk, lockBase }: CommitContext, job: CommitJob): { bases: BaseDirs; unlock(): void } {
  const roots: Dir[] = []
  const locks: (() => void)[] = []
  const unlock = (): void => {
    for (const release of locks.splice(0)) release()
  }
  try {
    for (const base of job.bases) {
      const root = openBase(disk, base.path)
      roots.push(root)
      refuseOtherFilesystem(disk, root, base)
    }
    for (const { path, root } of lockOrder(disk, job, roots)) locks.push(lockBase(root, path))
    return { bases: new BaseDirs(disk, roots), unlock }
  } catch (error) {
    unlock()
    for (const dir of roots) disk.close(dir)
    throw error
  }
}

/**
 * In one order for everybody, or two commits into the same bases would wait for each other; and each directory once, or
 * one that is mounted in two places of a base would wait for itself.
 */
function lockOrder(disk: Disk, job: CommitJob, roots: readonly Dir[]): { path: string; root: Dir }[] {
  const byNode = new Map<string, { path: string; root: Dir }>()
  for (const [index, { path }] of job.bases.entries()) {
    const root = roots[index] ?? 0
    const stat = disk.stat(root, NO_NAME)
    byNode.set(`${stat?.dev}:${stat?.ino}`, { path, root })
  }
  return [...byNode].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each)
}

function refuseOtherFilesystem(disk: Disk, root: Dir, base: JobBase): void {
  const now = filesystemMark(disk.stat(root, NO_NAME)?.dev ?? 0, disk.filesystemOf(root))
  if (!isSameFilesystem(base, now))
    throw new PuzzledError(
      'base-invalid',
      `"${base.path}" is on another filesystem than when the branch was forked`,
      { hint: 'Nothing was changed. Mount it again as it was, or discard the branch.' },
    )
}

function openBase(disk: CommitContext['disk'], path: string): number {
  try {
    return disk.openRoot(path)
  } catch (cause) {
    throw new PuzzledError('base-invalid', `Cannot open the base "${path}": ${errnoOf(cause) ?? cause}`, {
      cause,
      hint: 'Nothing was changed. Bring the directory back, without symlinks in its path.',
    })
  }
}

function makePlan(job: CommitJob, bases: BaseDirs): CommitPlan {
  try {
    return planCommit(job.changes, {
      allowSetuid: job.allowSetuid,
      inheritsGroup: (base, path) => {
        try {
          return (bases.open(base, path).mode & 0o2000) !== 0
        } catch (error) {
          // A parent that is gone is a conflict, which the survey reports with its path.
          if (errnoOf(error) === undefined) throw error
          return false
        }
      },
    })
  } catch (error) {
    if (error instanceof PlanError)
      throw new PuzzledError('denied', `Cannot commit "${textOf(error.change.path).path}": ${error.message}`)
    throw error
  }
}

/** J2: everything that INTENT will name is durable, on its target's filesystem, before INTENT is. */
async function stageAndRecord(
  context: CommitContext,
  job: CommitJob,
  { plan, surveyed, areas }: { plan: CommitPlan; surveyed: SurveyTable; areas: Areas },
  ground: Ground,
  journal: Dir,
): Promise<{ operations: PackedOperations; end: JournalEnd }> {
  const { disk } = context
  const total = plan.operations.reduce((sum, { tree }) => sum + tree.length, 0)
  let done = 0
  const stager = new Stager(disk, context.sources, () => context.tell?.(++done, total))
  const operations = new PackedOperations()
  for (const [row, operation] of plan.operations.entries()) {
    const { parent } = splitPath(operation.path)
    const found = surveyed.parent(row)
    const at = ground.dirs.open(operation.base, parent, found)
    if (operation.kind === 'adjust') {
      operations.push(adjustRecord(disk, operation, found, at.dir))
      continue
    }
    const area = areas.of(at) ?? 0
    const into = ground.areas[area]
    const ino = operation.tree.length > 0 && into !== undefined ? stager.stage(into, operation) : 0
    operations.push(entryRecord(operation, found, surveyed.target(row), { area, ino }))
  }
  failpoint('commit.staged')
  await syncBeside(disk, ground.areas, () => context.recheck?.())
  failpoint('commit.staged-synced')
  writeChanges(disk, journal, job.commit, job.changes, plan.stripped)
  const end = writePending(disk, journal, beginOf(disk, job, areas.list, ground.dirs), operations)
  return { operations, end }
}

const SYNCS_AT_ONCE = 2

/**
 * The disks take the longest of all steps. Meanwhile the layers are compared once more, which only reads. What that says
 * counts first; either way nobody closes the directories before the disks are done with them. Each sync takes a thread of the
 * pool that starts agents and reads files, too: there are four.
 */
async function syncBeside(disk: Disk, areas: readonly Dir[], compare: () => void): Promise<void> {
  const turn = async (first: number): Promise<void> => {
    const every = areas.filter((_, at) => at % SYNCS_AT_ONCE === first)
    for (const dir of every) await disk.syncfsBeside(dir)
  }
  const syncing = Promise.allSettled(Array.from({ length: SYNCS_AT_ONCE }, (_, first) => turn(first)))
  try {
    compare()
  } finally {
    await syncing
  }
  for (const synced of await syncing) if (synced.status === 'rejected') throw synced.reason
}
