import type { Requester } from '../contract/branch.ts'
import { accessError, asFileUser } from '../kernel/credentials.ts'
import { KernelError } from '../kernel/ffi.ts'
import { tryLock } from '../kernel/file-lock.ts'
import { readMounts } from '../kernel/mount.ts'
import { AT, close, O, openat2, RESOLVE } from '../kernel/paths.ts'
import { R_OK, W_OK, X_OK } from '../kernel/uapi/open.ts'
import { type Dir, NO_NAME } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { BaseDir } from './base-dirs.ts'
import { AREA_NAME } from './commit-areas.ts'
import type { Access, CommitContext, FindArea, Sources } from './commit-context.ts'
import { splitPath } from './journal/format.ts'
import { KernelDisk } from './kernel-disk.ts'

/** Everything of a commit that is this machine: disk, mounts, the requester's rights, locks. */
export function kernelContext(
  store: string,
  requester: Requester,
  sources: Sources,
  disk: KernelDisk = new KernelDisk(),
): CommitContext {
  return {
    disk,
    journal: `${store}/journal`,
    findArea: findArea(disk, store),
    lockBase: (dir, path) => lockBase(disk, dir, path),
    access: kernelAccess(disk, requester),
    sources,
  }
}

/**
 * Renames need one mount, and on btrfs one subvolume, so what is staged must be reachable where its target is: in the store
 * if that is there, too, else in a private directory in the root of the target's mount or subvolume.
 * docs/decisions/staging-place.md.
 */
function findArea(disk: KernelDisk, store: string): FindArea {
  return (at, path) => {
    const own = disk.openRoot(`${store}/staging`)
    try {
      if (isPartOf(disk, own, at)) return `${store}/staging`
    } finally {
      disk.close(own)
    }
    const entry = readMounts().find(({ id }) => id === at.mount)
    const root = entry === undefined ? undefined : topOf(disk, at, entry.target, path)
    if (root === undefined)
      throw new PuzzledError(
        'base-invalid',
        `The mount that holds "${path.toString()}" cannot be reached by its own path`,
        {
          hint: 'Something else is mounted over its root. Unmount that, or put the store on the same mount.',
        },
      )
    return root === '/' ? `/${AREA_NAME}` : `${root}/${AREA_NAME}`
  }
}

type Part = Pick<BaseDir, 'mount' | 'dev'>

const isPartOf = (disk: KernelDisk, dir: Dir, { mount, dev }: Part): boolean =>
  disk.mountOf(dir) === mount && disk.stat(dir, NO_NAME)?.dev === dev

/** The first directory from the root of the mount down to `path` that is in the same subvolume. Names that are not UTF-8 cannot be it. */
function topOf(disk: KernelDisk, part: Part, root: Buffer, path: Buffer): string | undefined {
  const rest = path.subarray(root.length).toString('latin1').split('/').filter(Boolean)
  for (let count = 0; count <= rest.length; count++) {
    const below = Buffer.from(rest.slice(0, count).join('/'), 'latin1')
    const top =
      below.length === 0 ? root : Buffer.concat([root, Buffer.from(root.at(-1) === 0x2f ? '' : '/'), below])
    const text = top.toString()
    if (!Buffer.from(text).equals(top)) return undefined
    const dir = disk.openRoot(text)
    try {
      if (isPartOf(disk, dir, part)) return text
      if (disk.mountOf(dir) !== part.mount) return undefined
    } finally {
      disk.close(dir)
    }
  }
  return undefined
}

const PATIENCE_MS = 10_000
const PAUSE_MS = 50

/** Another store (the user's own, beside the daemon's) may be committing into the same base at this moment. */
function lockBase(disk: KernelDisk, dir: Dir, path: string): () => void {
  // A descriptor of its own: the lock ends when it is closed, whoever closes it.
  const lock = disk.openDir(dir, NO_NAME)
  try {
    waitForLock(lock, path)
    return () => disk.close(lock)
  } catch (error) {
    disk.close(lock)
    throw error
  }
}

function waitForLock(lock: number, path: string): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let waited = 0; !tryLock(lock); waited += PAUSE_MS) {
    if (waited >= PATIENCE_MS)
      throw new PuzzledError('state-locked', `"${path}" is locked by somebody else`, {
        hint: 'Another commit into it runs, or a program holds a lock on the directory (see lslocks).',
      })
    Atomics.wait(pause, 0, 0, PAUSE_MS)
  }
}

const LOOK = O.PATH | O.DIRECTORY
const STRICT = RESOLVE.NO_SYMLINKS | RESOLVE.NO_MAGICLINKS

function kernelAccess(disk: KernelDisk, requester: Requester): Access {
  const ask = (run: () => string | null): string | null => asFileUser(requester, run)
  return {
    reach: (base, path) => ask(() => reach(base, path)),
    changeEntries: (dir) => ask(() => accessError(dir, NO_NAME, W_OK | X_OK)),
    write: (dir, name) => {
      const stat = disk.stat(dir, name)
      // A symlink has no permissions of its own.
      return stat?.kind === 'symlink' ? null : ask(() => accessError(dir, name, W_OK))
    },
  }
}

/** Whether somebody could read a file of a base themselves. What cannot be reached cannot be read. */
export function mayRead(disk: KernelDisk, reader: Requester, base: string, path: Uint8Array): boolean {
  const { parent, name } = splitPath(path)
  if (asFileUser(reader, () => reach(base, parent)) !== null) return false
  const root = disk.openRoot(base)
  try {
    const dir = disk.openDir(root, parent)
    try {
      return asFileUser(reader, () => accessError(dir, name, R_OK)) === null
    } finally {
      disk.close(dir)
    }
  } finally {
    disk.close(root)
  }
}

/** Opening is the whole check: the kernel asks for search permission on every directory on the way. */
function reach(base: string, path: Uint8Array): string | null {
  try {
    const root = openat2(AT.FDCWD, base, LOOK, STRICT)
    try {
      return path.length === 0 ? accessError(root, NO_NAME, X_OK) : reachBelow(root, path)
    } finally {
      close(root)
    }
  } catch (error) {
    if (error instanceof KernelError) return error.errnoName
    throw error
  }
}

function reachBelow(root: Dir, path: Uint8Array): string | null {
  // Reading is not asked for: a directory may be passable only.
  let at = root
  try {
    for (const part of Buffer.from(path).toString('latin1').split('/')) {
      const next = openat2(at, Buffer.from(part, 'latin1'), LOOK)
      if (at !== root) close(at)
      at = next
    }
    return accessError(at, NO_NAME, X_OK)
  } finally {
    if (at !== root) close(at)
  }
}
