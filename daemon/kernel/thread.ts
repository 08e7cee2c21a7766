import { trySyscall } from './ffi.ts'
import { NR } from './uapi/syscalls.ts'

/** The kernel's number of the calling thread. */
// SAFETY: no argument, cannot fail.
export const threadNumber = (): number => trySyscall(NR.gettid)

/** Whether this process has a thread of that number. */
export const hasThread = (thread: number): boolean =>
  // SAFETY: ints only; signal 0 is looked up and never sent.
  trySyscall(NR.tgkill, process.pid, thread, 0) === 0
