import { closeSync } from 'node:fs'
import { syscall } from './ffi.ts'
import { isFifo, type Stat, statFd } from './statx.ts'
import { F_DUPFD_CLOEXEC, NR, O_CLOEXEC } from './uapi/index.ts'

export interface Pipe {
  readonly read: number
  readonly write: number
}

/** Both ends are close-on-exec. Blocking: a program that is given an end expects that; Node switches its own. */
export function pipe(): Pipe {
  const ends = Buffer.alloc(8)
  // SAFETY: the kernel writes two ints; the buffer lives until the call returns.
  syscall('pipe2', NR.pipe2, ends, O_CLOEXEC)
  return { read: ends.readInt32LE(0), write: ends.readInt32LE(4) }
}

/** The same open file under another number, close-on-exec. */
export function duplicate(fd: number): number {
  // SAFETY: plain integers; the kernel keeps nothing of ours.
  return Number(syscall('fcntl', NR.fcntl, fd, F_DUPFD_CLOEXEC, 3))
}

let filesystem: number | undefined

/** Made by `pipe2`, ours or somebody else's: a fifo with a name is a file, and its filesystem may be anybody's. */
export function isNamelessPipe(stat: Stat): boolean {
  filesystem ??= filesystemOfPipes()
  return isFifo(stat) && stat.dev === filesystem
}

/** The kernel's own; there is one of it. */
function filesystemOfPipes(): number {
  const { read, write } = pipe()
  try {
    return statFd(read).dev
  } finally {
    closeSync(read)
    closeSync(write)
  }
}
