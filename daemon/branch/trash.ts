import { KernelError } from '../kernel/ffi.ts'
import { clearImmutable } from '../kernel/file-flags.ts'
import { fchmodat, O, openat, withFd } from '../kernel/paths.ts'
import { type Dir, type DiskStat, NO_NAME } from '../lib/disk.ts'
import { HeldDescriptors } from './held-descriptors.ts'
import { HoldingDisk } from './kernel-disk.ts'
import { treeSize } from './retention.ts'
import { removeTree } from './staging-area.ts'

/**
 * A disk for removing what agents left: files that were made immutable and directories that their owner locked are no
 * reason to keep them. For the trash only; a commit never uses it.
 */
class RemovingDisk extends HoldingDisk {
  readonly #ending: () => boolean

  constructor(held: HeldDescriptors, ending: () => boolean) {
    super(held)
    this.#ending = ending
  }

  /** Every name is looked at before anything is done with it: here a removal can end. */
  override stat(dir: Dir, name: Uint8Array): DiskStat | null {
    if (this.#ending()) throw new Ended()
    return super.stat(dir, name)
  }

  override openDir(dir: Dir, path: Uint8Array): Dir {
    try {
      return super.openDir(dir, path)
    } catch (error) {
      if (!refused(error, 'EACCES') || path.length === 0) throw error
      fchmodat(dir, path, 0o700)
      return super.openDir(dir, path)
    }
  }

  override unlink(dir: Dir, name: Uint8Array): void {
    this.#retry(dir, name, () => super.unlink(dir, name))
  }

  override removeDir(dir: Dir, name: Uint8Array): void {
    this.#retry(dir, name, () => super.removeDir(dir, name))
  }

  override rename(...args: Parameters<HoldingDisk['rename']>): void {
    this.#retry(args[0], args[1], () => super.rename(...args))
  }

  #retry(dir: Dir, name: Uint8Array, run: () => void): void {
    try {
      run()
    } catch (error) {
      if (!refused(error, 'EPERM') && !refused(error, 'EACCES')) throw error
      const kind = this.stat(dir, name)?.kind
      if (kind === 'dir') fchmodat(dir, name, 0o700)
      let cleared = clearImmutable(dir)
      if (kind === 'file' || kind === 'dir')
        cleared = withFd(openat(dir, name, O.RDONLY | O.NONBLOCK), clearImmutable) || cleared
      if (!cleared && kind !== 'dir') throw error
      run()
    }
  }
}

class Ended extends Error {}

const refused = (error: unknown, errno: string): boolean =>
  error instanceof KernelError && error.errnoName === errno

/**
 * Removes everything in the trash, whatever depth and names it has. Interrupted, it goes on the next time, and what it
 * had open is among `held`. When `ending` says so it ends by itself at the next name, with nothing open.
 */
export function emptyTrash(
  path: string,
  held: HeldDescriptors = new HeldDescriptors(),
  ending: () => boolean = () => false,
): { branches: number; bytes: number } {
  const disk = new RemovingDisk(held, ending)
  const trash = disk.openRoot(path)
  const removed = { branches: 0, bytes: 0 }
  try {
    for (const name of disk.list(trash)) {
      const bytes = treeSize(disk, path, name)
      removeTree(disk, trash, name)
      removed.branches++
      removed.bytes += bytes
    }
    disk.fsync(trash, NO_NAME)
  } catch (error) {
    if (!(error instanceof Ended)) throw error
  } finally {
    disk.close(trash)
  }
  return removed
}
