import { closeSync, readFileSync } from 'node:fs'
import type { SpawnOp, SpawnRequest } from '../../daemon/contract/spawn.ts'
import { syscall } from '../../daemon/kernel/ffi.ts'
import { type ProcessEnd, waitPidfd } from '../../daemon/kernel/pidfd.ts'
import { NR, O_CLOEXEC } from '../../daemon/kernel/uapi/index.ts'

/** Short words for the tests of the trampoline. */

export const ALL_NAMESPACES: SpawnRequest['namespaces'] = [
  'NEWNS',
  'NEWPID',
  'NEWNET',
  'NEWIPC',
  'NEWUTS',
  'NEWCGROUP',
]

export const op = (call: string, args: SpawnOp['args']): SpawnOp => ({ name: call, call, args, expect: 'ok' })

const text = (value: string): Buffer => Buffer.from(`${value}\0`)

/** The last entry: execve with an environment that has a PATH only. */
export function execute(...argv: readonly [string, ...string[]]): SpawnOp {
  const environment = { vector: [text('PATH=/usr/bin:/bin')] }
  return op('execve', [text(argv[0]), { vector: argv.map(text) }, environment])
}

export function pipe(): { read: number; write: number } {
  const ends = Buffer.alloc(8)
  // SAFETY: two ints are written into the eight bytes.
  syscall('pipe2', NR.pipe2, ends, O_CLOEXEC)
  return { read: ends.readInt32LE(0), write: ends.readInt32LE(4) }
}

/** Everything until the last writer is gone, and the end of the pipe closed. */
export function readAll(descriptor: number): string {
  const content = readFileSync(descriptor, 'utf8')
  closeSync(descriptor)
  return content
}

/** Waits on this thread for a child that ends by itself, and closes its pidfd. */
export function endOf(pidfd: number): ProcessEnd {
  const end = waitPidfd(pidfd, { block: true })
  closeSync(pidfd)
  if (end === undefined) throw new Error('The child has not ended')
  return end
}
