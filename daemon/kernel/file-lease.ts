import { KernelError, trySyscall } from './ffi.ts'
import { F_RDLCK, F_SETLEASE, F_SETSIG } from './uapi/open.ts'
import { NR } from './uapi/syscalls.ts'

/** Ignored unless a program asks for it. A broken lease sends SIGIO otherwise, which ends a process. */
const SIGURG = 23
const EAGAIN = -11

/**
 * Whether anybody has the file of a read-only descriptor open for writing, or mapped shared and writable after closing
 * it: nobody can be given a read lease then. The lease ends when the descriptor is closed. False also where nobody can
 * say: leases are off, the filesystem has none (FUSE, NFSv3), or the file is another user's and CAP_LEASE is missing.
 */
export function isOpenForWriting(fd: number): boolean {
  // SAFETY: ints only; sets which signal this descriptor would send.
  const signal = trySyscall(NR.fcntl, fd, F_SETSIG, SIGURG)
  if (signal < 0) throw new KernelError('fcntl F_SETSIG', -signal, [fd])
  // SAFETY: ints only; the lease belongs to this open file and goes with it.
  return trySyscall(NR.fcntl, fd, F_SETLEASE, F_RDLCK) === EAGAIN
}
