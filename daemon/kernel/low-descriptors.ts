import { closeSync, openSync, readlinkSync } from 'node:fs'
import { PuzzledError } from '../lib/errors.ts'

/** `select(2)` in a C library ends the whole process when it is given a descriptor from here on (`FD_SETSIZE`). */
const SELECTABLE = 1024
const ATTEMPTS = 32
/** Enough for a process that has few others. */
const FEW = 8

const held: number[] = []
let wanted = FEW

/**
 * Keeps low descriptors for `withLowSocket`. To be called while the process is young: a daemon with fifty agents has
 * passed them long ago. It wants many: between two uses, another thread may open a file in the room that was left, and
 * keep it for as long as its branch lasts.
 */
export function reserveLowDescriptors(count = FEW): void {
  wanted = Math.max(wanted, count)
  while (held.length < wanted) {
    const fd = openSync('/dev/null', 'r')
    if (fd >= SELECTABLE) {
      closeSync(fd)
      return
    }
    held.push(fd)
  }
}

/**
 * Lets `open` make an object with one socket that is below the limit, and `work` use it. `close` must close that socket,
 * and is called in any case.
 */
export function withLowSocket<Made, T>(
  open: () => Made,
  close: (made: Made) => void,
  work: (made: Made) => T,
): T {
  reserveLowDescriptors()
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const expected = nextDescriptor()
      if (expected >= SELECTABLE) break
      const made = open()
      try {
        if (isSocket(expected)) return work(made)
      } finally {
        close(made)
      }
    }
  } finally {
    reserveLowDescriptors()
  }
  throw new PuzzledError(
    'kernel-refused',
    `No descriptor below ${SELECTABLE} is free, and nftables can use no other`,
    {
      hint: 'End some branches, or restart the daemon.',
    },
  )
}

/** The number that whatever is opened next will have, after one of ours made room. */
function nextDescriptor(): number {
  const mine = held.pop()
  if (mine !== undefined) closeSync(mine)
  const next = openSync('/dev/null', 'r')
  closeSync(next)
  return next
}

/** Another thread may have been quicker with a file; sockets are opened by this one alone. */
function isSocket(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
