import { addressOf, cstring, KernelError, syscall, trySyscall } from './ffi.ts'
import {
  AF_UNIX,
  PR_SET_DUMPABLE,
  PR_SET_NO_NEW_PRIVS,
  PR_SET_PDEATHSIG,
  RLIMIT_CORE,
  RLIMIT_FSIZE,
  RLIMIT_MEMLOCK,
  SECCOMP_FILTER_FLAG_TSYNC,
  SECCOMP_SET_MODE_FILTER,
  SOCK_STREAM,
} from './uapi/index.ts'
import { NR } from './uapi/syscalls.ts'

/** Nobody: owns nothing, and is the name of no person. */
const NOBODY = 65534
const SIGKILL = 9
const INSTRUCTION_BYTES = 8
const AT_FDCWD = -100
const EPERM = 1
const SIGCHLD = 17

/**
 * Takes from this whole process, with every thread that it has, what it does not need once its code is loaded: root's
 * ids and with them all capabilities, new privileges, files (by `filter`), core files, being traced, and life without
 * the parent. It cannot be undone. Then the doors are tried. Any failure is an exception, and the caller must end.
 */
export function confineProcess(filter: Uint8Array): void {
  // SAFETY: no arguments. The first call loads the library, whose files nobody may not be able to read.
  syscall('getpid', NR.getpid)
  if (process.geteuid?.() === 0) becomeNobody()
  // SAFETY: ints. A change of ids clears the last of them, hence the order.
  syscall('prctl', NR.prctl, PR_SET_NO_NEW_PRIVS, 1)
  // SAFETY: as above.
  syscall('prctl', NR.prctl, PR_SET_DUMPABLE, 0)
  // SAFETY: as above.
  syscall('prctl', NR.prctl, PR_SET_PDEATHSIG, SIGKILL)
  // SAFETY: two zeroed 64-bit words that outlive the call; no old limits are asked for.
  for (const limit of [RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_MEMLOCK])
    syscall('prlimit64', NR.prlimit64, 0, limit, new Uint8Array(16), 0)
  installForAllThreads(filter)
  tryDoors()
}

/** By libc, which changes every thread; leaving root's id empties the capability sets of each. */
function becomeNobody(): void {
  process.setgroups?.([])
  process.setgid?.(NOBODY)
  process.setuid?.(NOBODY)
}

function installForAllThreads(filter: Uint8Array): void {
  const program = new Uint8Array(16)
  const view = new DataView(program.buffer)
  view.setUint16(0, filter.length / INSTRUCTION_BYTES, true)
  view.setBigUint64(8, addressOf(filter), true)
  // SAFETY: `struct sock_fprog` points to `filter`; both outlive the synchronous call, and the kernel copies them.
  const result = syscall('seccomp', NR.seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program)
  // A number above zero is the thread that could not take the filter: then no thread has it.
  if (result !== 0) throw new KernelError('seccomp', EPERM, ['thread', result])
}

/** After a door is locked it is tried. */
function tryDoors(): void {
  const path = cstring('/')
  const doors = [
    // SAFETY: a NUL-terminated path that outlives the call; if it opened, the process ends with the exception below.
    ['openat', trySyscall(NR.openat, AT_FDCWD, path, 0, 0)],
    // SAFETY: ints.
    ['socket', trySyscall(NR.socket, AF_UNIX, SOCK_STREAM, 0)],
    // SAFETY: ints. Without CLONE_VM the child would be a copy of this process, which also ends with the exception.
    ['clone', trySyscall(NR.clone, SIGCHLD, 0, 0, 0, 0)],
    // SAFETY: null pointers: EFAULT where the filter lets it through.
    ['execve', trySyscall(NR.execve, 0, 0, 0)],
  ] as const
  for (const [name, result] of doors)
    if (result !== -EPERM)
      throw new Error(`The worker could not be confined: ${name} answered ${result}, expected EPERM`)
}
