import { type Dir, type Disk, type DiskStat, nameOf } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { BaseDirs } from './base-dirs.ts'
import { fromMetaText, type OldIdentity, type Operation, pathOf, splitPath } from './journal/format.ts'

/** What the operations of one journal work on: open bases and the commit's own directory in each area. */
export interface Ground {
  disk: Disk
  dirs: BaseDirs
  areas: readonly Dir[]
}

/** J5: looks which side of each rename the base is on, and does what is missing. Running it twice is running it once. */
export function applyAll(ground: Ground, operations: readonly Operation[]): void {
  for (const operation of operations) {
    forward(ground, operation)
    failpoint(`commit.applied-${operation.kind}`)
  }
}

/** The old tree again. All steps are tried; the failures are returned. */
export function undoAll(ground: Ground, operations: readonly Operation[]): unknown[] {
  const failures: unknown[] = []
  const attempt = (operation: Operation): void => {
    try {
      backward(ground, operation)
      failpoint(`undo.${operation.kind}`)
    } catch (error) {
      failures.push(error)
    }
  }
  const entries = operations.filter(({ kind }) => kind !== 'adjust')
  for (const operation of entries.toReversed()) attempt(operation)
  // Last, because renaming entries back changed the times of their directories.
  for (const operation of operations) if (operation.kind === 'adjust') attempt(operation)
  return failures
}

function forward(ground: Ground, operation: Operation): void {
  const at = locate(ground, operation)
  if (operation.kind === 'adjust') {
    if (at.target?.ino !== operation.ino) throw moved(at)
    ground.disk.setMeta(at.dir, at.name, fromMetaText(operation.after))
    return
  }
  const { area, slot, staged } = locateSlot(ground, operation)
  if (operation.kind === 'remove') {
    if (staged?.ino === operation.old.ino) return
    if (at.target?.ino !== operation.old.ino) throw moved(at)
    ground.disk.rename(at.dir, at.name, area, slot, 'move')
    unchanged(ground, area, slot, operation.old, at)
    return
  }
  if (at.target?.ino !== operation.ino) {
    if (staged?.ino !== operation.ino) throw moved(at)
    if (operation.kind === 'place') ground.disk.rename(area, slot, at.dir, at.name, 'move')
    else {
      if (at.target?.ino !== operation.old.ino) throw moved(at)
      ground.disk.rename(area, slot, at.dir, at.name, 'exchange')
      unchanged(ground, area, slot, operation.old, at)
    }
  }
  if (operation.time !== null) ground.disk.setTime(at.dir, at.name, BigInt(operation.time))
}

function backward(ground: Ground, operation: Operation): void {
  const at = locate(ground, operation)
  if (operation.kind === 'adjust') {
    if (at.target?.ino !== operation.ino) throw moved(at)
    ground.disk.setMeta(at.dir, at.name, fromMetaText(operation.before))
    return
  }
  const { area, slot, staged } = locateSlot(ground, operation)
  if (operation.kind === 'place') {
    if (staged?.ino === operation.ino) return
    if (at.target?.ino !== operation.ino) throw moved(at)
    ground.disk.rename(at.dir, at.name, area, slot, 'move')
    return
  }
  if (staged?.ino === operation.old.ino) {
    if (operation.kind === 'swap' && at.target?.ino !== operation.ino) throw moved(at)
    ground.disk.rename(area, slot, at.dir, at.name, operation.kind === 'swap' ? 'exchange' : 'move')
  } else if (at.target?.ino !== operation.old.ino) {
    // Never applied. What stands there now is not our work, whoever's it is.
    if (operation.kind === 'remove' || staged?.ino === operation.ino) return
    throw moved(at)
  }
  if (operation.old.dir) ground.disk.setTime(at.dir, at.name, BigInt(operation.old.mtime))
}

interface Place {
  dir: Dir
  name: Buffer
  target: DiskStat | null
  shown: string
}

function locate({ disk, dirs }: Ground, operation: Operation): Place {
  const { parent, name } = splitPath(pathOf(operation))
  const { dir } = dirs.open(operation.base, parent, operation.parent)
  return { dir, name, target: disk.stat(dir, name), shown: operation.path.path }
}

function locateSlot(
  { disk, areas }: Ground,
  operation: Exclude<Operation, { kind: 'adjust' }>,
): { area: Dir; slot: Buffer; staged: DiskStat | null } {
  const area = areas[operation.area]
  if (area === undefined) throw new PuzzledError('internal', `There is no staging area ${operation.area}`)
  const slot = nameOf(operation.slot)
  return { area, slot, staged: disk.stat(area, slot) }
}

/** The last look: what was taken out must be what was compared before. */
function unchanged({ disk }: Ground, area: Dir, slot: Buffer, old: OldIdentity, at: Place): void {
  const taken = disk.stat(area, slot)
  const same =
    taken?.ino === old.ino &&
    (taken.kind === 'dir' || (taken.size === old.size && String(taken.mtimeNs) === old.mtime))
  if (!same) throw moved(at)
}

const moved = (at: Place): PuzzledError =>
  new PuzzledError('conflict', `"${at.shown}" was changed by somebody else during the commit`, {
    data: { conflicts: [{ path: at.shown, message: 'it was changed during the commit' }] },
  })
