import { KernelError, trySyscall } from './ffi.ts'
import { LOCK_EX, LOCK_NB } from './uapi/open.ts'
import { NR } from './uapi/syscalls.ts'

const EWOULDBLOCK = -11

/**
 * flock(2), exclusive, without waiting: false when somebody else holds it. The lock belongs to the open file and ends
 * with its last descriptor, also when the process is killed. Directories can be locked.
 */
export function tryLock(fd: number): boolean {
  // SAFETY: two ints.
  const result = trySyscall(NR.flock, fd, LOCK_EX | LOCK_NB)
  if (result === 0) return true
  if (result === EWOULDBLOCK) return false
  throw new KernelError('flock', -result, [fd])
}
