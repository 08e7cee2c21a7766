import { constants } from 'node:os'
import { syscall, trySyscall } from './ffi.ts'
import {
  __WALL,
  CLD_EXITED,
  NR,
  P_PIDFD,
  rusage as rusageLayout,
  siginfo as siginfoLayout,
  WEXITED,
  WNOHANG,
  WNOWAIT,
} from './uapi/index.ts'

/** How a process ended and what it and its waited-for children used. */
export interface ProcessEnd {
  readonly pid: number
  readonly exitCode: number | undefined
  /** `SIGKILL` … when a signal ended it. */
  readonly signal: string | undefined
  readonly userMicros: number
  readonly systemMicros: number
  readonly maxRssKiB: number
}

const SIGNAL_NAMES = new Map<number, string>()
for (const [name, number] of Object.entries(constants.signals))
  if (!SIGNAL_NAMES.has(number)) SIGNAL_NAMES.set(number, name)

/** `SIGKILL` for 9; real-time signals by number. */
export const signalName = (signal: number): string => SIGNAL_NAMES.get(signal) ?? `signal ${signal}`

/** A descriptor (close-on-exec) that refers to this process and never to another one that gets its number. */
export function pidfdOpen(pid: number): number {
  // SAFETY: integers only.
  return syscall('pidfd_open', NR.pidfd_open, pid, 0)
}

/** False when the process has ended; signal 0 only asks. Every other failure throws. */
export function pidfdSendSignal(pidfd: number, signal: number): boolean {
  // SAFETY: integers and a null siginfo, for which the kernel fills in our own credentials.
  const result = trySyscall(NR.pidfd_send_signal, pidfd, signal, null, 0)
  if (result === -constants.errno.ESRCH) return false
  // SAFETY: as above; the second attempt only produces the error with its arguments.
  return result === 0 || syscall('pidfd_send_signal', NR.pidfd_send_signal, pidfd, signal, null, 0) === 0
}

/** A duplicate (close-on-exec) of another process's descriptor. Needs the right to trace that process. */
export function pidfdGetfd(pidfd: number, descriptor: number): number {
  // SAFETY: integers only.
  return syscall('pidfd_getfd', NR.pidfd_getfd, pidfd, descriptor, 0)
}

/**
 * The end of our child, collected; undefined while it runs. `block` waits on the calling thread: only for a child that
 * is known to have ended. `peek` leaves it collectable.
 */
export function waitPidfd(
  pidfd: number,
  options: { block?: boolean; peek?: boolean } = {},
): ProcessEnd | undefined {
  const info = Buffer.alloc(siginfoLayout.size)
  const usage = Buffer.alloc(rusageLayout.size)
  // __WALL: until it executes a program, a child of the trampoline has no exit signal, which WEXITED alone overlooks.
  const flags =
    WEXITED | __WALL | (options.block === true ? 0 : WNOHANG) | (options.peek === true ? WNOWAIT : 0)
  for (;;) {
    // SAFETY: both buffers have the size of the kernel's structures and live until the call returns.
    const result = trySyscall(NR.waitid, P_PIDFD, pidfd, info, flags, usage)
    if (result === -constants.errno.EINTR) continue
    // SAFETY: as above; repeats the call to throw its error.
    if (result < 0) syscall('waitid', NR.waitid, P_PIDFD, pidfd, info, flags, usage)
    break
  }
  if (info.readInt32LE(siginfoLayout.si_pid) === 0) return undefined
  return processEnd(info, usage)
}

function processEnd(info: Buffer, usage: Buffer): ProcessEnd {
  const status = info.readInt32LE(siginfoLayout.si_status)
  const exited = info.readInt32LE(siginfoLayout.si_code) === CLD_EXITED
  const micros = (offset: number): number =>
    Number(usage.readBigInt64LE(offset)) * 1e6 + Number(usage.readBigInt64LE(offset + 8))
  return {
    pid: info.readInt32LE(siginfoLayout.si_pid),
    exitCode: exited ? status : undefined,
    signal: exited ? undefined : signalName(status),
    userMicros: micros(rusageLayout.ru_utime),
    systemMicros: micros(rusageLayout.ru_stime),
    maxRssKiB: Number(usage.readBigInt64LE(rusageLayout.ru_maxrss)),
  }
}
