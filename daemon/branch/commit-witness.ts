import type { Change } from '../contract/changeset.ts'
import { type Dir, type Disk, type DiskStat, nameOf } from '../lib/disk.ts'
import { isTime } from '../lib/file-time.ts'
import { type Operation, pathOf } from './journal/format.ts'
import { SortedChanges } from './sorted-changes.ts'

/** `new`: what the commit made. `old`: what it takes out of the base. */
type Side = 'old' | 'new'
type Entry = Exclude<Operation, { kind: 'adjust' }>

const SLASH = Buffer.from('/')

/**
 * Tells the commit's own work from somebody else's, in what was renamed into its private directory: there nobody reaches
 * it by a path any more, so what is found does not change again. Names that are missing are nobody's loss; names that
 * are too many and contents of another time are somebody's work.
 */
export class Witness {
  readonly #disk: Disk
  readonly #read: () => readonly Change[]
  #changes: SortedChanges | undefined

  /** `read` is asked when the first directory has to be told; what it throws is what the question throws. */
  constructor(disk: Disk, read: () => readonly Change[]) {
    this.#disk = disk
    this.#read = read
  }

  /** Whether the slot of an operation holds what the commit put into the base, and nothing that was done to it there. */
  made(area: Dir, operation: Entry): boolean {
    return this.#same(area, nameOf(operation.slot), operation.base, pathOf(operation), 'new')
  }

  /** Whether the directory in the slot of an operation holds only what was seen in the base. */
  left(area: Dir, operation: Entry): boolean {
    return this.#same(area, nameOf(operation.slot), operation.base, pathOf(operation), 'old')
  }

  #changeAt(base: number, path: Uint8Array): Change | undefined {
    this.#changes ??= new SortedChanges(this.#read())
    return this.#changes.find(base, path)
  }

  #same(dir: Dir, name: Buffer, base: number, path: Buffer, side: Side): boolean {
    const stat = this.#disk.stat(dir, name)
    const change = this.#changeAt(base, path)
    if (stat === null || change === undefined || !isNode(stat, change, side)) return false
    // Whoever can still write to what leaves would lose it.
    if (side === 'old' && stat.kind === 'file' && this.#disk.hasWriter(dir, name)) return false
    return stat.kind !== 'dir' || this.#sameBelow(dir, name, base, path, side)
  }

  #sameBelow(parent: Dir, name: Buffer, base: number, path: Buffer, side: Side): boolean {
    const dir = this.#disk.openDir(parent, name)
    try {
      // What is mounted there is not the commit's.
      if (this.#disk.mountOf(dir) !== this.#disk.mountOf(parent)) return false
      return this.#disk
        .list(dir)
        .every((child) => this.#same(dir, child, base, Buffer.concat([path, SLASH, child]), side))
    } finally {
      this.#disk.close(dir)
    }
  }
}

function isNode(stat: DiskStat, change: Change, side: Side): boolean {
  const state = change[side]
  if (state === null || state.type !== stat.kind) return false
  if (stat.kind === 'dir') return true
  if (stat.size !== state.size) return false
  if (side === 'new') return isTime(stat.mtimeNs, state.mtimeNs)
  // A revert knows what it takes away by its content, which was compared; whose time it has does not matter to it.
  const { identity } = change
  return identity === undefined || (identity.ino === stat.ino && identity.mtimeNs === stat.mtimeNs)
}
