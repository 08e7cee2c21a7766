import { cstring, KernelError, nameWord, syscall, trySyscall } from './ffi.ts'
import { AT, O, RENAME, RESOLVE } from './file-numbers.ts'
import { UTIME_OMIT } from './uapi/open.ts'
import { NR } from './uapi/syscalls.ts'

/**
 * Names below directory descriptors. Nothing here takes a path from the root except `openRoot`: a walk holds the
 * directory that it checked. Names are bytes; strings are accepted where the daemon itself chose the name.
 *
 * SAFETY, for every call in this file: synchronous on the calling thread; a name is copied into a fresh
 * NUL-terminated buffer that `syscall` keeps alive until the call returns; the kernel only reads it.
 */

export { AT, O, RENAME, RESOLVE, S } from './file-numbers.ts'

export type Name = Uint8Array | string

/** How a component below a descriptor is resolved: never out of it, through no symlink, through no /proc link. */
export const BENEATH = RESOLVE.BENEATH | RESOLVE.NO_SYMLINKS | RESOLVE.NO_MAGICLINKS

/** Opens below `dir`. Close-on-exec is always added: a descriptor that leaks into an agent is an escape. */
export function openat2(dir: number, path: Name, flags: number, resolve = BENEATH, mode = 0): number {
  const how = Buffer.alloc(24)
  how.writeBigUInt64LE(BigInt(flags | O.CLOEXEC), 0)
  how.writeBigUInt64LE(BigInt(mode), 8)
  how.writeBigUInt64LE(BigInt(resolve), 16)
  // EAGAIN: a rename ran while the kernel checked `..`; openat2(2) asks the caller to try again.
  for (let attempt = 0; ; attempt++) {
    // SAFETY: `how` is the 24 bytes of struct open_how and outlives the call.
    const fd = trySyscall(NR.openat2, dir, cstring(path), how, 24)
    if (fd >= 0) return fd
    if (fd !== -11 || attempt === 32) throw new KernelError('openat2', -fd, [dir, cstring(path)])
  }
}

/** Opens an absolute path of the daemon's own choosing as a directory; symlinks above it are followed. */
export const openRoot = (path: Name, flags: number = O.RDONLY): number =>
  // SAFETY: see the head of the file.
  syscall('openat', NR.openat, AT.FDCWD, cstring(path), flags | O.DIRECTORY | O.CLOEXEC, 0)

/** Opens one component; its last symlink is never followed. Refuses names that are more than one component. */
export function openat(dir: number, name: Name, flags: number, mode = 0): number {
  const bytes = component(name)
  // SAFETY: see the head of the file; the name may stand in the scratch memory of `nameWord`, which no call in between uses.
  const fd = trySyscall(NR.openat, dir, nameWord(bytes), flags | O.NOFOLLOW | O.CLOEXEC | O.NOCTTY, mode)
  if (fd < 0) throw new KernelError('openat', -fd, [dir, bytes])
  return fd
}

/** A name that getdents could have returned: anything else would let `openat` leave the directory. */
export function component(name: Name): Uint8Array {
  const bytes = typeof name === 'string' ? Buffer.from(name) : name
  if (bytes.length === 0 || bytes.includes(0x2f) || isDots(bytes))
    throw new KernelError('component', 22, [name])
  return bytes
}

const isDots = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x2e && (bytes.length === 1 || (bytes.length === 2 && bytes[1] === 0x2e))

export function close(fd: number): void {
  // SAFETY: an int. The descriptor is gone even when close reports an error, so it is never retried.
  const result = trySyscall(NR.close, fd)
  if (result < 0) throw new KernelError('close', -result, [fd])
}

/** Runs with a descriptor and closes it. */
export function withFd<Result>(fd: number, run: (fd: number) => Result): Result {
  try {
    return run(fd)
  } finally {
    close(fd)
  }
}

const linkBuffer = Buffer.alloc(65_536)

/** The target's bytes; with an empty name, of the symlink that an O_PATH descriptor holds. */
export function readlinkat(dir: number, name: Name): Buffer {
  // SAFETY: writes at most the given length into the module's buffer; copied out before any other call.
  const length = syscall('readlinkat', NR.readlinkat, dir, cstring(name), linkBuffer, linkBuffer.length)
  return Buffer.from(linkBuffer.subarray(0, length))
}

/** The mode is narrowed by the umask of the process: follow with `fchmod` where it must be exact. */
export function mkdirat(dir: number, name: Name, mode: number): void {
  // SAFETY: see the head of the file.
  syscall('mkdirat', NR.mkdirat, dir, cstring(name), mode)
}

/** `mode` carries the type. The device number is for whiteouts (0, 0) and tests. */
export function mknodat(dir: number, name: Name, mode: number, major = 0, minor = 0): void {
  const device = ((major & 0xfff) << 8) | (minor & 0xff) | ((minor & 0xfff00) << 12)
  // SAFETY: see the head of the file.
  syscall('mknodat', NR.mknodat, dir, cstring(name), mode, device)
}

export function symlinkat(target: Name, dir: number, name: Name): void {
  // SAFETY: see the head of the file.
  syscall('symlinkat', NR.symlinkat, cstring(target), dir, cstring(name))
}

/** Without flags a symlink itself is linked. `AT.EMPTY_PATH` with an empty name links a descriptor. */
export function linkat(fromDir: number, from: Name, toDir: number, to: Name, flags = 0): void {
  // SAFETY: see the head of the file.
  syscall('linkat', NR.linkat, fromDir, cstring(from), toDir, cstring(to), flags)
}

/** `AT.REMOVEDIR` for a directory. */
export function unlinkat(dir: number, name: Name, flags = 0): void {
  // SAFETY: see the head of the file.
  syscall('unlinkat', NR.unlinkat, dir, cstring(name), flags)
}

/** Never replaces silently unless told: the default is `RENAME.NOREPLACE`. */
export function renameat2(
  fromDir: number,
  from: Name,
  toDir: number,
  to: Name,
  flags: number = RENAME.NOREPLACE,
): void {
  // SAFETY: see the head of the file.
  syscall('renameat2', NR.renameat2, fromDir, cstring(from), toDir, cstring(to), flags)
}

/** Changes the mode of a name that the caller knows not to be a symlink: the kernel would follow it. */
export function fchmodat(dir: number, name: Name, mode: number): void {
  // SAFETY: see the head of the file.
  syscall('fchmodat', NR.fchmodat, dir, cstring(name), mode)
}

export function fchmod(fd: number, mode: number): void {
  // SAFETY: two ints.
  syscall('fchmod', NR.fchmod, fd, mode)
}

/** -1 keeps an id. A symlink itself is changed, never its target. */
export function fchownat(dir: number, name: Name, uid: number, gid: number): void {
  const flags = AT.SYMLINK_NOFOLLOW | (name.length === 0 ? AT.EMPTY_PATH : 0)
  // SAFETY: see the head of the file.
  syscall('fchownat', NR.fchownat, dir, cstring(name), uid, gid, flags)
}

export function fchown(fd: number, uid: number, gid: number): void {
  // SAFETY: three ints.
  syscall('fchown', NR.fchown, fd, uid, gid)
}

/** Nanoseconds since the epoch; undefined leaves a time as it is. A symlink itself is changed. */
export function utimensat(dir: number, name: Name, mtimeNs: bigint | undefined, atimeNs?: bigint): void {
  const times = timespecs(atimeNs, mtimeNs)
  // SAFETY: `times` is two struct timespec of 16 bytes each, only read.
  syscall('utimensat', NR.utimensat, dir, cstring(name), times, AT.SYMLINK_NOFOLLOW)
}

/** The same for what a descriptor (not an O_PATH one) refers to. */
export function futimens(fd: number, mtimeNs: bigint | undefined, atimeNs?: bigint): void {
  // SAFETY: a null path with a descriptor is how futimens(3) is made; `times` is only read.
  syscall('utimensat', NR.utimensat, fd, null, timespecs(atimeNs, mtimeNs), 0)
}

function timespecs(...times: (bigint | undefined)[]): Buffer {
  const buffer = Buffer.alloc(32)
  times.forEach((time, index) => {
    const nanoseconds = time === undefined ? BigInt(UTIME_OMIT) : ((time % BILLION) + BILLION) % BILLION
    const seconds = time === undefined ? 0n : (time - nanoseconds) / BILLION
    buffer.writeBigInt64LE(seconds, index * 16)
    buffer.writeBigInt64LE(nanoseconds, index * 16 + 8)
  })
  return buffer
}

const BILLION = 1_000_000_000n

/** Whether the calling thread's *effective* ids may do this; false for the errno of a refusal, else it throws. */
export function faccessat2(dir: number, name: Name, mode: number): boolean {
  const flags = AT.EACCESS | AT.SYMLINK_NOFOLLOW | (name.length === 0 ? AT.EMPTY_PATH : 0)
  // SAFETY: see the head of the file.
  const result = trySyscall(NR.faccessat2, dir, cstring(name), mode, flags)
  if (result === 0) return true
  if (result === -13 || result === -1 || result === -30) return false
  throw new KernelError('faccessat2', -result, [dir, cstring(name), mode])
}
