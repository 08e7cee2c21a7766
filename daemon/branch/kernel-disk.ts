import { KernelError } from '../kernel/ffi.ts'
import { fsync, syncfs, syncfsBeside } from '../kernel/file-data.ts'
import { isOpenForWriting } from '../kernel/file-lease.ts'
import { filesystemId } from '../kernel/filesystem-id.ts'
import { listDirectory } from '../kernel/getdents.ts'
import {
  AT,
  BENEATH,
  close,
  fchmod,
  fchown,
  fchownat,
  futimens,
  linkat,
  mkdirat,
  type Name,
  O,
  openat,
  openat2,
  RENAME,
  RESOLVE,
  readlinkat,
  renameat2,
  symlinkat,
  unlinkat,
  utimensat,
  withFd,
} from '../kernel/paths.ts'
import { inheritedProject, setProject } from '../kernel/quota.ts'
import { isDirectory, isFile, isSymlink, type Stat, statFd, tryStatAt } from '../kernel/statx.ts'
import { STATX_ATTR_APPEND, STATX_ATTR_IMMUTABLE } from '../kernel/uapi/open.ts'
import { getXattr, listXattrs, removeXattr, setXattr, type XattrTarget } from '../kernel/xattr.ts'
import type { Copied, Dir, Disk, DiskMeta, DiskStat, DiskXattr, FileKind, RenameHow } from '../lib/disk.ts'
import type { HeldDescriptors } from './held-descriptors.ts'
import { copyContent, digestContent, readContent, writeContent } from './kernel-content.ts'
import { isLanded } from './landed-meta.ts'

/** openat2 takes at most PATH_MAX bytes; deeper paths are walked in parts. */
const PART = 3000
const OPEN_DIR = O.RDONLY | O.DIRECTORY
/** A FIFO that somebody put in a file's place must not make us wait. */
const OPEN_FILE = O.RDONLY | O.NONBLOCK
const HOW = { move: RENAME.NOREPLACE, exchange: RENAME.EXCHANGE, replace: 0 } as const
const DOT = '.'

/** The port of a commit on the real system calls. Synchronous: it lives in a worker. */
export class KernelDisk implements Disk {
  openRoot(path: string): Dir {
    return openat2(AT.FDCWD, path, OPEN_DIR, RESOLVE.NO_SYMLINKS | RESOLVE.NO_MAGICLINKS)
  }

  openDir(dir: Dir, path: Uint8Array): Dir {
    if (path.length === 0) return openat2(dir, DOT, OPEN_DIR)
    let at = dir
    for (const part of partsOf(path)) {
      const from = at
      try {
        at = openPart(from, part)
      } finally {
        if (from !== dir) close(from)
      }
    }
    return at
  }

  close(dir: Dir): void {
    close(dir)
  }

  mountOf(dir: Dir): number {
    return statFd(dir).mountId
  }

  projectOf(dir: Dir): number | undefined {
    return inheritedProject(dir)
  }

  setProject(dir: Dir, project: number): void {
    setProject(dir, project)
  }

  filesystemOf(dir: Dir): string | undefined {
    return filesystemId(dir)
  }

  stat(dir: Dir, name: Uint8Array): DiskStat | null {
    const stat = name.length === 0 ? statFd(dir) : tryStatAt(dir, name)
    return stat === undefined ? null : toDiskStat(stat)
  }

  list(dir: Dir): Buffer[] {
    return withFd(openat2(dir, DOT, OPEN_DIR), (fd) => listDirectory(fd).map(({ name }) => name))
  }

  readLink(dir: Dir, name: Uint8Array): Buffer {
    return readlinkat(dir, name)
  }

  xattrs(dir: Dir, name: Uint8Array): DiskXattr[] {
    return keptXattrs(name.length === 0 ? dir : { dir, name })
  }

  hasWriter(dir: Dir, name: Uint8Array): boolean {
    let fd: number
    try {
      fd = openat(dir, name, OPEN_FILE)
    } catch (error) {
      // Somebody holds a write lease (a file server does): our open has asked for it, and did not wait.
      if (error instanceof KernelError && error.errnoName === 'EAGAIN') return true
      throw error
    }
    return withFd(fd, isOpenForWriting)
  }

  digest(dir: Dir, name: Uint8Array): string {
    return withFd(openat(dir, name, OPEN_FILE), digestContent)
  }

  makeDir(dir: Dir, name: Uint8Array, mode: number): void {
    mkdirat(dir, name, mode)
  }

  makeLink(dir: Dir, name: Uint8Array, target: Uint8Array): void {
    symlinkat(target, dir, name)
  }

  copyFile(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array, meta?: DiskMeta): Copied {
    // Made with the mode that it will have, there is nothing left to change in most files.
    const mode = meta === undefined ? 0o600 : meta.mode & 0o777
    return withFd(openat(fromDir, from, OPEN_FILE), (source) =>
      withFd(openat(dir, name, O.RDWR | O.CREAT | O.EXCL, mode), (target) => {
        const sha256 = copyContent(source, target)
        const made = statFd(target)
        if (meta !== undefined) setOpenMeta(target, meta, made)
        return { ino: made.ino, sha256 }
      }),
    )
  }

  hardLink(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array): void {
    linkat(fromDir, from, dir, name)
  }

  setMeta(dir: Dir, name: Uint8Array, meta: DiskMeta): void {
    const stat = name.length === 0 ? statFd(dir) : tryStatAt(dir, name)
    if (stat === undefined) throw new KernelError('statx', 2, [name])
    if (isSymlink(stat)) {
      fchownat(dir, name, meta.uid, meta.gid)
      utimensat(dir, name, meta.mtimeNs)
      return
    }
    withFd(openSame(dir, name, stat), (fd) => setOpenMeta(fd, meta, statFd(fd)))
  }

  setTime(dir: Dir, name: Uint8Array, mtimeNs: bigint): void {
    if (name.length === 0) futimens(dir, mtimeNs)
    else utimensat(dir, name, mtimeNs)
  }

  rename(fromDir: Dir, from: Uint8Array, dir: Dir, name: Uint8Array, how: RenameHow): void {
    renameat2(fromDir, from, dir, name, HOW[how])
  }

  unlink(dir: Dir, name: Uint8Array): void {
    unlinkat(dir, name)
  }

  removeDir(dir: Dir, name: Uint8Array): void {
    unlinkat(dir, name, AT.REMOVEDIR)
  }

  readFile(dir: Dir, name: Uint8Array): Buffer {
    return withFd(openat(dir, name, OPEN_FILE), readContent)
  }

  writeAt(dir: Dir, name: Uint8Array, offset: number, bytes: Uint8Array): void {
    withFd(openat(dir, name, O.WRONLY | O.CREAT, 0o600), (fd) => writeContent(fd, bytes, offset))
  }

  fsync(dir: Dir, name: Uint8Array): void {
    if (name.length === 0) fsync(dir)
    else withFd(openat(dir, name, OPEN_FILE), fsync)
  }

  syncfs(dir: Dir): void {
    syncfs(dir)
  }

  syncfsBeside(dir: Dir): Promise<void> {
    return syncfsBeside(dir)
  }
}

/** The same, with every directory that is open on a list that outlives the thread. */
export class HoldingDisk extends KernelDisk {
  readonly held: HeldDescriptors

  constructor(held: HeldDescriptors) {
    super()
    this.held = held
  }

  override openRoot(path: string): Dir {
    const dir = super.openRoot(path)
    this.held.hold(dir)
    return dir
  }

  override openDir(from: Dir, path: Uint8Array): Dir {
    const dir = super.openDir(from, path)
    this.held.hold(dir)
    return dir
  }

  override close(dir: Dir): void {
    this.held.drop(dir)
    super.close(dir)
  }
}

function* partsOf(path: Uint8Array): Generator<Buffer> {
  let rest = Buffer.from(path)
  while (rest.length > PART) {
    const at = rest.lastIndexOf(0x2f, PART)
    if (at <= 0) throw new KernelError('openat2', 36, [path])
    yield rest.subarray(0, at)
    rest = rest.subarray(at + 1)
  }
  yield rest
}

const openPart = (dir: Dir, part: Name): Dir => openat2(dir, part, OPEN_DIR, BENEATH)

/** Opens what was looked at, or nothing: a name can be given to something else in between. */
function openSame(dir: Dir, name: Uint8Array, stat: Stat): number {
  if (!isFile(stat) && !isDirectory(stat)) throw new KernelError('open', 22, [name])
  const fd = name.length === 0 ? openat2(dir, DOT, OPEN_DIR) : openat(dir, name, OPEN_FILE)
  const opened = statFd(fd)
  if (opened.ino === stat.ino && opened.dev === stat.dev) return fd
  close(fd)
  throw new KernelError('open', 116, [name])
}

/** Owner first: it takes away setuid bits and capabilities. ACLs before the mode, which is their mask. Times last. */
function setOpenMeta(fd: number, meta: DiskMeta, now: Stat): void {
  const owned = now.uid === meta.uid && now.gid === meta.gid
  if (!owned) fchown(fd, meta.uid, meta.gid)
  const found = keptXattrs(fd)
  const wanted = new Set(meta.xattrs.map(({ name }) => name))
  for (const { name } of found) if (!wanted.has(name)) removeXattr(fd, name)
  for (const { name, value } of meta.xattrs) setXattr(fd, name, value)
  // An owner takes bits away, and an ACL is part of the mode: only where neither was touched the mode is still known.
  const known = owned && found.length === 0 && wanted.size === 0
  if (!known || (now.mode & 0o7777) !== meta.mode) fchmod(fd, meta.mode)
  futimens(fd, meta.mtimeNs)
}

function keptXattrs(target: XattrTarget): DiskXattr[] {
  return listXattrs(target)
    .filter(isLanded)
    .flatMap((name) => {
      const value = getXattr(target, name)
      return value === undefined ? [] : [{ name, value }]
    })
}

const kindOf = (stat: Stat): FileKind =>
  isFile(stat) ? 'file' : isDirectory(stat) ? 'dir' : isSymlink(stat) ? 'symlink' : 'other'

function toDiskStat(stat: Stat): DiskStat {
  const { dev, ino, uid, gid, size, mtimeNs, ctimeNs, nlink, attributes } = stat
  return {
    kind: kindOf(stat),
    mode: stat.mode & 0o7777,
    ...{ dev, ino, uid, gid, size, mtimeNs, ctimeNs, nlink },
    allocated: stat.blocks * BLOCK,
    sealed: sealOf(attributes),
  }
}

/** What statx counts in, whatever the blocks of the filesystem are. */
const BLOCK = 512

const sealOf = (attributes: number): DiskStat['sealed'] =>
  (attributes & STATX_ATTR_IMMUTABLE) !== 0
    ? 'immutable'
    : (attributes & STATX_ATTR_APPEND) !== 0
      ? 'append-only'
      : null
