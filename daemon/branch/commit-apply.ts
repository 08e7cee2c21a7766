import { type Dir, type Disk, type DiskStat, nameOf } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { isTime } from '../lib/file-time.ts'
import type { BaseDirs } from './base-dirs.ts'
import type { Witness } from './commit-witness.ts'
import { OPEN_FOR_WRITING } from './conflict.ts'
import { fromMetaText, type MetaText, type Operation, pathOf, splitPath } from './journal/format.ts'

/** What the operations of one journal work on: open bases and the commit's own directory in each area. */
export interface Ground {
  disk: Disk
  dirs: BaseDirs
  areas: readonly Dir[]
  witness: Witness
}

type Entry = Exclude<Operation, { kind: 'adjust' }>
type Adjust = Extract<Operation, { kind: 'adjust' }>

/** J5: looks which side of each rename the base is on, and does what is missing. Running it twice is running it once. */
export function applyAll(ground: Ground, operations: Iterable<Operation>): void {
  for (const operation of operations) {
    forward(ground, operation)
    failpoint(`commit.applied-${operation.kind}`)
  }
}

/** The old tree again. All steps are tried; the failures are returned. */
export function undoAll(ground: Ground, operations: Iterable<Operation>): unknown[] {
  const failures: unknown[] = []
  const attempt = (operation: Operation): void => {
    try {
      backward(ground, operation)
      failpoint(`undo.${operation.kind}`)
    } catch (error) {
      failures.push(error)
    }
  }
  const entries = [...operations].filter(({ kind }) => kind !== 'adjust')
  for (const operation of entries.toReversed()) attempt(operation)
  // Last, because renaming entries back changed the times of their directories.
  for (const operation of operations) if (operation.kind === 'adjust') attempt(operation)
  return failures
}

function forward(ground: Ground, operation: Operation): void {
  const at = locate(ground, operation)
  if (operation.kind === 'adjust') {
    adjust(ground, operation, at)
    return
  }
  const { area, slot, staged } = locateSlot(ground, operation)
  if (operation.kind === 'remove') {
    if (staged?.ino !== operation.old.ino) {
      if (at.target?.ino !== operation.old.ino) throw moved(at)
      ground.disk.rename(at.dir, at.name, area, slot, 'move')
    }
    unchanged(ground, area, operation, at)
    return
  }
  if (at.target?.ino !== operation.ino) {
    if (staged?.ino !== operation.ino) throw moved(at)
    if (operation.kind === 'place') ground.disk.rename(area, slot, at.dir, at.name, 'move')
    else {
      if (at.target?.ino !== operation.old.ino) throw moved(at)
      // In this direction the kernel also says whether the old one could come back to where it belongs (projects).
      ground.disk.rename(at.dir, at.name, area, slot, 'exchange')
    }
  }
  if (operation.kind === 'swap') unchanged(ground, area, operation, at)
  if (operation.time !== null) ground.disk.setTime(at.dir, at.name, BigInt(operation.time))
}

function backward(ground: Ground, operation: Operation): void {
  const at = locate(ground, operation)
  if (operation.kind === 'adjust') {
    adjustBack(ground, operation, at)
    return
  }
  const { area, slot, staged } = locateSlot(ground, operation)
  if (operation.kind === 'place') {
    if (staged?.ino === operation.ino) return
    if (at.target?.ino !== operation.ino) throw moved(at)
    ground.disk.rename(at.dir, at.name, area, slot, 'move')
    if (ground.witness.made(area, operation)) return
    // Somebody has worked on it since: it is theirs now, and the undo would throw it away.
    ground.disk.rename(area, slot, at.dir, at.name, 'move')
    throw moved(at)
  }
  if (staged?.ino === operation.old.ino) {
    if (operation.kind === 'swap' && at.target?.ino !== operation.ino) throw moved(at)
    ground.disk.rename(area, slot, at.dir, at.name, operation.kind === 'swap' ? 'exchange' : 'move')
    if (operation.kind === 'swap' && !ground.witness.made(area, operation)) {
      ground.disk.rename(area, slot, at.dir, at.name, 'exchange')
      throw moved(at)
    }
  } else if (at.target?.ino !== operation.old.ino) {
    // Never applied. What stands there now is not our work, whoever's it is.
    if (operation.kind === 'remove' || staged?.ino === operation.ino) return
    throw moved(at)
  }
  if (operation.old.dir) ground.disk.setTime(at.dir, at.name, BigInt(operation.old.mtime))
}

/** Looks at a file's time once more: metadata that somebody saves with a new content is not ours to set. */
function adjust({ disk }: Ground, operation: Adjust, at: Place): void {
  const { target } = at
  if (target?.ino !== operation.ino) throw moved(at)
  if (target.kind === 'file' && !isWithin(target, operation)) throw moved(at)
  if (isTimeOnly(operation)) disk.setTime(at.dir, at.name, BigInt(operation.after.mtime))
  else disk.setMeta(at.dir, at.name, fromMetaText(operation.after))
}

/** A file that somebody has replaced or written to meanwhile is theirs, and so is a mode that is not the one we set. */
function adjustBack({ disk }: Ground, operation: Adjust, at: Place): void {
  const { target } = at
  if (target?.kind !== 'dir' && (target?.ino !== operation.ino || !isWithin(target, operation))) return
  if (target.ino !== operation.ino) throw moved(at)
  const { mode, uid, gid } = operation.after
  const applied = target.mode === mode && target.uid === uid && target.gid === gid
  if (applied && !isTimeOnly(operation)) disk.setMeta(at.dir, at.name, fromMetaText(operation.before))
  else if (target.kind === 'dir' || applied) disk.setTime(at.dir, at.name, BigInt(operation.before.mtime))
}

const isWithin = ({ mtimeNs }: DiskStat, { before, after }: Adjust): boolean =>
  [before, after].some(({ mtime }) => isTime(mtimeNs, BigInt(mtime)))

/** A directory in which entries were renamed gets its old time back; its mode may have become another one meanwhile. */
const isTimeOnly = ({ before, after }: Adjust): boolean => metaOf(before) === metaOf(after)

const metaOf = ({ mode, uid, gid, xattrs }: MetaText): string => JSON.stringify([mode, uid, gid, xattrs])

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
  operation: Entry,
): { area: Dir; slot: Buffer; staged: DiskStat | null } {
  const area = areas[operation.area]
  if (area === undefined) throw new PuzzledError('internal', `There is no staging area ${operation.area}`)
  const slot = nameOf(operation.slot)
  return { area, slot, staged: disk.stat(area, slot) }
}

/** The last look: what was taken out must be what was compared before, a directory with everything in it. */
function unchanged(
  { disk, witness }: Ground,
  area: Dir,
  operation: Exclude<Entry, { kind: 'place' }>,
  at: Place,
): void {
  const { old, slot } = operation
  const taken = disk.stat(area, nameOf(slot))
  const same =
    taken?.ino === old.ino &&
    (taken.kind === 'dir'
      ? witness.left(area, operation)
      : taken.size === old.size && String(taken.mtimeNs) === old.mtime)
  if (!same) throw moved(at)
  // Nobody can open it by its path any more: who has it open now can go on writing, and nobody else begins to.
  if (taken.kind === 'file' && disk.hasWriter(area, nameOf(slot))) throw moved(at, OPEN_FOR_WRITING)
}

const moved = (at: Place, message = 'it was changed by somebody else during the commit'): PuzzledError =>
  new PuzzledError('conflict', `"${at.shown}": ${message}`, {
    data: { conflicts: [{ path: at.shown, message }] },
  })
