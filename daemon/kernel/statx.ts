import { asFileTime } from '../lib/file-time.ts'
import { addressOf, cstring, KernelError, nameWord, type SysArg, trySyscall } from './ffi.ts'
import { AT, S } from './file-numbers.ts'
import { statx as layout, STATX_BASIC_STATS, STATX_MNT_ID } from './uapi/open.ts'
import { NR } from './uapi/syscalls.ts'

/** What statx tells of one inode. Times are exact; `dev` is spelled like Node's `fs.Stats.dev`. */
export interface Stat {
  /** Type and permission bits. */
  mode: number
  nlink: number
  uid: number
  gid: number
  dev: number
  ino: number
  size: number
  /** 512-byte blocks in use: fewer than the size needs means holes. */
  blocks: number
  rdevMajor: number
  rdevMinor: number
  mtimeNs: bigint
  ctimeNs: bigint
  mountId: number
  /** `STATX_ATTR_*` that the filesystem says the inode has. */
  attributes: number
}

const WANTED = STATX_BASIC_STATS | STATX_MNT_ID
const buffer = Buffer.alloc(layout.size)
let bufferAddress: bigint | undefined
const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
const EMPTY = cstring('')

/** The inode of a name; a symlink itself, never its target. */
export function statAt(dir: number, name: Uint8Array | string): Stat {
  const result = statx(dir, nameWord(name), AT.SYMLINK_NOFOLLOW)
  if (result < 0) throw new KernelError('statx', -result, [dir, name])
  return decode()
}

/** The same; undefined where there is nothing. Only ENOENT and ENOTDIR mean nothing. */
export function tryStatAt(dir: number, name: Uint8Array | string): Stat | undefined {
  const result = statx(dir, nameWord(name), AT.SYMLINK_NOFOLLOW)
  if (result === 0) return decode()
  if (result === -2 || result === -20) return undefined
  throw new KernelError('statx', -result, [dir, name])
}

/** The inode of a descriptor, O_PATH ones included. */
export function statFd(fd: number): Stat {
  const result = statx(fd, EMPTY, AT.EMPTY_PATH)
  if (result < 0) throw new KernelError('statx', -result, [fd])
  return decode()
}

/** What another process has written down: a `struct statx` as the kernel fills it in. */
export function statIn(bytes: Buffer): Stat {
  bytes.copy(buffer)
  return decode()
}

function statx(dir: number, path: SysArg, flags: number): number {
  bufferAddress ??= addressOf(buffer)
  // SAFETY: writes 256 bytes of struct statx into the module's buffer, which is decoded before any other call of
  // this thread; each worker has its own module instance and so its own buffer.
  return trySyscall(NR.statx, dir, path, flags | AT.NO_AUTOMOUNT, WANTED, bufferAddress)
}

const time = (at: number): bigint =>
  asFileTime(view.getBigInt64(at, true) * 1_000_000_000n + BigInt(view.getUint32(at + 8, true)))

const word64 = (at: number): number => view.getUint32(at + 4, true) * 4_294_967_296 + view.getUint32(at, true)

function decode(): Stat {
  return {
    mode: view.getUint16(layout.stx_mode, true),
    nlink: view.getUint32(layout.stx_nlink, true),
    uid: view.getUint32(layout.stx_uid, true),
    gid: view.getUint32(layout.stx_gid, true),
    dev: makedev(view.getUint32(layout.stx_dev_major, true), view.getUint32(layout.stx_dev_minor, true)),
    ino: word64(layout.stx_ino),
    size: word64(layout.stx_size),
    blocks: word64(layout.stx_blocks),
    rdevMajor: view.getUint32(layout.stx_rdev_major, true),
    rdevMinor: view.getUint32(layout.stx_rdev_minor, true),
    mtimeNs: time(layout.stx_mtime),
    ctimeNs: time(layout.stx_ctime),
    mountId: word64(layout.stx_mnt_id),
    attributes: view.getUint32(layout.stx_attributes, true),
  }
}

/** glibc's encoding of a device number. */
const makedev = (major: number, minor: number): number =>
  Math.floor(major / 0x1000) * 0x1000_0000_0000 +
  Math.floor(minor / 0x100) * 0x10_0000 +
  (major & 0xfff) * 0x100 +
  (minor & 0xff)

export const isDirectory = (stat: { mode: number }): boolean => (stat.mode & S.IFMT) === S.IFDIR
export const isFile = (stat: { mode: number }): boolean => (stat.mode & S.IFMT) === S.IFREG
export const isCharacterDevice = (stat: { mode: number }): boolean => (stat.mode & S.IFMT) === S.IFCHR
export const isFifo = (stat: { mode: number }): boolean => (stat.mode & S.IFMT) === S.IFIFO
export const isSocket = (stat: { mode: number }): boolean => (stat.mode & S.IFMT) === S.IFSOCK
export const isSymlink = (stat: { mode: number }): boolean => (stat.mode & S.IFMT) === S.IFLNK
