import { KernelError, syscall, trySyscall, trySyscallBeside } from './ffi.ts'
import { statfs } from './uapi/mount.ts'
import { SEEK_DATA, SEEK_HOLE } from './uapi/open.ts'
import { FICLONE } from './uapi/quota.ts'
import { NR } from './uapi/syscalls.ts'

/** Bytes of open files: copying, holes and durability. SAFETY of every call: ints and buffers that outlive it. */

const EOF = -6

/** Shares the blocks of `from` with `to`; false where the filesystem cannot. */
export function clone(from: number, to: number): boolean {
  // SAFETY: FICLONE takes a descriptor as its argument, no pointer.
  const result = trySyscall(NR.ioctl, to, FICLONE, from)
  if (result === 0) return true
  const unsupported = [-95, -25, -22, -18, -26, -38]
  if (unsupported.includes(result)) return false
  throw new KernelError('ioctl FICLONE', -result, [to, from])
}

/** Copies within the kernel at explicit offsets; the number of bytes, 0 at the end of `from`. */
export function copyFileRange(
  from: number,
  fromOffset: number,
  to: number,
  toOffset: number,
  length: number,
): number {
  const source = Buffer.alloc(8)
  const target = Buffer.alloc(8)
  source.writeBigInt64LE(BigInt(fromOffset))
  target.writeBigInt64LE(BigInt(toOffset))
  // SAFETY: the two offsets are read and written in place by the kernel; both buffers live here.
  return syscall('copy_file_range', NR.copy_file_range, from, source, to, target, length, 0)
}

/** The first range of data at or after `from`; undefined when only a hole (or nothing) is left. */
export function nextData(fd: number, from: number, size: number): { start: number; end: number } | undefined {
  if (from >= size) return undefined
  // SAFETY: ints only; the file position that this moves is not used by anything in the daemon.
  const start = trySyscall(NR.lseek, fd, from, SEEK_DATA)
  if (start === EOF) return undefined
  if (start < 0) return whole(start, from, size)
  // SAFETY: ints only.
  const end = trySyscall(NR.lseek, fd, start, SEEK_HOLE)
  return end < 0 ? whole(end, start, size) : { start, end: Math.min(end, size) }
}

/** A filesystem that does not know holes (EINVAL) has one range of data. */
function whole(result: number, start: number, size: number): { start: number; end: number } {
  if (result !== -22 && result !== EOF) throw new KernelError('lseek', -result, [start])
  return { start, end: size }
}

/** Reads at an offset; fewer bytes than asked only at the end of the file. */
export function pread(fd: number, into: Uint8Array, offset: number): number {
  let done = 0
  while (done < into.length) {
    const part = done === 0 ? into : into.subarray(done)
    // SAFETY: writes at most `part.length` bytes into memory that the caller holds.
    const count = trySyscall(NR.pread64, fd, part, part.length, offset + done)
    if (count === 0) break
    if (count > 0) done += count
    else if (count !== -4) throw new KernelError('pread64', -count, [fd, offset])
  }
  return done
}

export function ftruncate(fd: number, size: number): void {
  // SAFETY: ints only.
  syscall('ftruncate', NR.ftruncate, fd, size)
}

export function fsync(fd: number): void {
  // SAFETY: an int.
  syscall('fsync', NR.fsync, fd)
}

/** Makes everything on the filesystem of `fd` durable; reports write-back errors of the whole filesystem. */
export function syncfs(fd: number): void {
  // SAFETY: an int.
  syscall('syncfs', NR.syncfs, fd)
}

/** The same on another thread: what the disk takes long for need not be waited for at once. */
export async function syncfsBeside(fd: number): Promise<void> {
  // SAFETY: an int; whoever calls keeps it open until this is over.
  const result = await trySyscallBeside(NR.syncfs, fd)
  if (result < 0) throw new KernelError('syncfs', -result, [fd])
}

export interface FilesystemFacts {
  /** f_fsid, hexadecimal: what it is made of is each filesystem's own choice. */
  fsid: string
  /** `ext4`, `xfs`, `btrfs`, `tmpfs`, `overlay`, …; hexadecimal where the number is not known. */
  type: string
  blockSize: number
  blocksFree: number
  blocksTotal: number
  filesFree: number
  readOnly: boolean
  nosuid: boolean
  nodev: boolean
}

const TYPES: Readonly<Record<number, string>> = {
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  16914836: 'tmpfs',
  2035054128: 'overlay',
  26985: 'nfs',
  1702057286: 'fuse',
  4076150800: 'f2fs',
  801189825: 'zfs',
  3393526350: 'bcachefs',
  2240043254: 'ramfs',
  40864: 'proc',
  1650812274: 'sysfs',
  4283649346: 'cifs',
  4266872130: 'smb2',
  16914839: '9p',
  12805120: 'ceph',
  61791: 'ecryptfs',
  19780: 'vfat',
  538032816: 'exfat',
  1936814952: 'squashfs',
  38496: 'iso9660',
}

/** fstatfs: the type and the room of the filesystem, and how this mount of it is restricted. */
export function fstatfs(fd: number): FilesystemFacts {
  const buffer = Buffer.alloc(statfs.size)
  // SAFETY: struct statfs is 120 bytes on both architectures; the buffer lives here.
  syscall('fstatfs', NR.fstatfs, fd, buffer)
  const word = (at: number): number => Number(buffer.readBigUInt64LE(at))
  const magic = buffer.readUInt32LE(statfs.f_type)
  const flags = word(statfs.f_flags)
  return {
    type: TYPES[magic] ?? `0x${magic.toString(16)}`,
    fsid: buffer.toString('hex', statfs.f_fsid, statfs.f_fsid + 8),
    blockSize: word(statfs.f_bsize),
    blocksTotal: word(statfs.f_blocks),
    blocksFree: word(statfs.f_bavail),
    filesFree: word(statfs.f_ffree),
    readOnly: (flags & 1) !== 0,
    nosuid: (flags & 2) !== 0,
    nodev: (flags & 4) !== 0,
  }
}
