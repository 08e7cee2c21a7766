import { encodePath } from '../contract/bytes.ts'
import type { Change, NodeState } from '../contract/changeset.ts'
import type { DiskStat } from '../lib/disk.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import type { BaseDirs } from './base-dirs.ts'
import type { CommitContext, CommitJob } from './commit-context.ts'
import type { CommitPlan, PlannedOperation } from './commit-plan.ts'
import { conflictError, conflictOf, type Found, OPEN_FOR_WRITING } from './conflict.ts'
import { splitPath } from './journal/format.ts'
import { landingKey } from './own-landings.ts'
import { absoluteKey } from './removed-since.ts'
import { SurveyTable } from './survey-table.ts'

interface Collision {
  path: Uint8Array
  message: string
}

/**
 * Compares the base with what the reviewer saw, under the base lock. Every collision is collected, so that a person
 * hears of all of them at once. This look also asks who has the files open that leave; the last word on that has
 * the apply step, when nobody can open them any more. Returns what the journal will record, a row for each operation.
 */
export function survey(
  context: CommitContext,
  job: CommitJob,
  plan: CommitPlan,
  dirs: BaseDirs,
): SurveyTable {
  const table = new SurveyTable(plan.operations.length)
  look(context, job, plan, dirs, table)
  return table
}

/** The same comparison once more. What it finds is what was found before, or a collision: nothing is kept. */
export function surveyAgain(context: CommitContext, job: CommitJob, plan: CommitPlan, dirs: BaseDirs): void {
  look(context, job, plan, dirs, null)
}

/** With a table it is the first look. */
function look(
  context: CommitContext,
  job: CommitJob,
  plan: CommitPlan,
  dirs: BaseDirs,
  table: SurveyTable | null,
): void {
  const collisions: Collision[] = []
  const askWriters = (change: Change, target: DiskStat | null): void => {
    if (table !== null && target?.kind === 'file') refuseWriter(context, dirs, change, collisions)
  }
  for (const [row, operation] of plan.operations.entries()) {
    const found = lookUp(context, job, dirs, operation, collisions)
    if (found === null) continue
    table?.set(row, found.parent, found.target)
    if (leaves(operation.kind, operation.change)) askWriters(operation.change, found.target)
  }
  for (const change of plan.folded)
    askWriters(change, compare(context, job, dirs, change, collisions)?.target ?? null)
  strangers(context, dirs, plan, collisions)
  if (collisions.length > 0) throw conflictError(collisions)
}

function refuseWriter(
  { disk }: CommitContext,
  dirs: BaseDirs,
  change: Change,
  collisions: Collision[],
): void {
  const { parent, name } = splitPath(change.path)
  try {
    if (disk.hasWriter(dirs.open(change.base, parent).dir, name))
      collisions.push({ path: change.path, message: OPEN_FOR_WRITING })
  } catch (error) {
    collisions.push({ path: change.path, message: unreachableBecause(error) })
  }
}

function lookUp(
  context: CommitContext,
  job: CommitJob,
  dirs: BaseDirs,
  operation: PlannedOperation,
  collisions: Collision[],
): { parent: number; target: DiskStat | null } | null {
  const { change } = operation
  if (change !== null) return compare(context, job, dirs, change, collisions)
  const { parent, name } = splitPath(operation.path)
  try {
    const at = dirs.open(operation.base, parent)
    const target = context.disk.stat(at.dir, name)
    refuseSealed(operation.path, target)
    return { parent: at.ino, target }
  } catch (error) {
    collisions.push({ path: operation.path, message: unreachableBecause(error) })
    return null
  }
}

function compare(
  context: CommitContext,
  job: CommitJob,
  dirs: BaseDirs,
  change: Change,
  collisions: Collision[],
): { parent: number; target: DiskStat | null } | null {
  const { parent, name } = splitPath(change.path)
  try {
    const at = dirs.open(change.base, parent)
    onExpectedMount(job, change, dirs, at.mount)
    const target = context.disk.stat(at.dir, name)
    refuseSealed(change.path, target)
    const since = context.landings?.get(landingKey(change.base, change.path)) ?? job.forkedAtNs
    const message =
      conflictOf(change, lookCloser(context, at.dir, name, change, target), since) ??
      removalOf(context, job, change)
    if (message !== null) collisions.push({ path: change.path, message })
    return { parent: at.ino, target }
  } catch (error) {
    if (error instanceof PuzzledError) throw error
    collisions.push({ path: change.path, message: unreachableBecause(error) })
    return null
  }
}

/** Only of what the base lacks: what is there again is somebody's newer work, and a conflict by that. */
function removalOf({ removed }: CommitContext, job: CommitJob, { base, path, old }: Change): string | null {
  if (removed === undefined || removed.size === 0 || old !== null) return null
  const commit = removed.get(absoluteKey(job.bases[base]?.path, path))
  return commit === undefined ? null : `commit ${commit} removed it after the fork`
}

/** The kernel refuses it, to root as well, and a directory could not be brought back once something was put into it. */
function refuseSealed(path: Uint8Array, target: DiskStat | null): void {
  if (target === null || target.sealed === null) return
  const shown = encodePath(path).path || '.'
  const [what, flag] = target.sealed === 'immutable' ? ['immutable', 'i'] : ['append-only', 'a']
  throw new PuzzledError('not-writable', `Cannot commit "${shown}": it is ${what} in the base`, {
    hint: `Nothing was changed. Take the flag away with chattr -${flag}, or drop the path.`,
    data: { ...encodePath(path) },
  })
}

/** Content is read only where no identity was recorded (a revert): there the state itself is compared. */
function lookCloser(
  { disk }: CommitContext,
  dir: number,
  name: Uint8Array,
  change: Change,
  stat: DiskStat | null,
): Found {
  const old: NodeState | null = change.old
  if (stat === null || old === null || change.identity !== undefined || stat.kind !== old.type)
    return { stat }
  if (old.type === 'symlink') return { stat, link: disk.readLink(dir, name) }
  const xattrs = disk.xattrs(dir, name)
  if (old.type === 'dir') return { stat, xattrs }
  return stat.size === old.size ? { stat, xattrs, sha256: disk.digest(dir, name) } : { stat }
}

/**
 * Mounts below a base are bases of their own: whatever else is mounted there came after the fork, of another filesystem or
 * of the same one. A subvolume has another device number and is no mount.
 */
function onExpectedMount(job: CommitJob, change: Change, dirs: BaseDirs, mount: number): void {
  if (mount === dirs.mountOf(change.base)) return
  const path = `${job.bases[change.base]?.path}/${encodePath(change.path).path}`
  throw new PuzzledError('base-invalid', `"${path}" is on another mount than when the branch was forked`, {
    hint: 'Something was mounted below the base. Unmount it, or fork again.',
  })
}

/** A directory that leaves as a whole must hold nothing that the reviewer did not see leave. */
function strangers({ disk }: CommitContext, dirs: BaseDirs, plan: CommitPlan, collisions: Collision[]): void {
  const known = new Map<string, Set<string>>()
  const keyOf = (change: Change, path: Uint8Array): string =>
    `${change.base}:${Buffer.from(path).toString('latin1')}`
  for (const change of plan.folded) {
    const { parent, name } = splitPath(change.path)
    const key = keyOf(change, parent)
    const names = known.get(key) ?? new Set<string>()
    names.add(name.toString('latin1'))
    known.set(key, names)
  }
  for (const change of leaving(plan)) {
    if (change.old?.type !== 'dir' || change.new?.type === 'dir') continue
    const names = known.get(keyOf(change, change.path))
    try {
      const { dir, mount } = dirs.open(change.base, change.path)
      if (mount !== dirs.mountOf(change.base))
        collisions.push({ path: change.path, message: 'something is mounted on it' })
      for (const name of disk.list(dir))
        if (!names?.has(name.toString('latin1')))
          collisions.push({
            path: Buffer.concat([change.path, Buffer.from('/'), name]),
            message: 'it was made in the base, in a directory that the branch removes',
          })
    } catch (error) {
      collisions.push({ path: change.path, message: unreachableBecause(error) })
    }
  }
}

function* leaving({ folded, operations }: CommitPlan): Generator<Change> {
  yield* folded
  for (const { kind, change } of operations) if (leaves(kind, change)) yield change
}

const leaves = (kind: PlannedOperation['kind'], change: Change | null): change is Change =>
  change !== null && (kind === 'remove' || kind === 'swap')

function unreachableBecause(error: unknown): string {
  switch (errnoOf(error)) {
    case 'ELOOP':
      return 'a directory above it was replaced by a symlink'
    case 'ENOTDIR':
      return 'a directory above it was replaced by something else'
    case 'ENOENT':
      return 'a directory above it is gone from the base'
    case 'EXDEV':
      return 'a directory above it leads out of the base'
    default:
      throw error
  }
}
