import { closeSync } from 'node:fs'
import type { SpawnRequest } from '../contract/spawn.ts'
import { spawn } from '../kernel/clone.ts'
import { initExecutable } from '../kernel/init-program.ts'
import { waitPidfd } from '../kernel/pidfd.ts'
import { pipe } from '../kernel/pipe.ts'
import { AT_EMPTY_PATH, F_SETFD } from '../kernel/uapi/index.ts'
import { PuzzledError } from '../lib/errors.ts'
import { call, cstring } from './calls.ts'

/** A process that does nothing until it is released: some things of the kernel and of systemd need one to begin with. */
export interface Holder {
  readonly pid: number
  /** Ends and collects it. Must be called exactly once. */
  release(): void
}

/** It reads from a pipe that only we hold the other end of, so it also ends when the daemon is killed. */
export async function startHolder(namespaces: SpawnRequest['namespaces']): Promise<Holder> {
  const [hold, status] = [pipe(), pipe()]
  try {
    const result = await spawn({ namespaces, ops: waitingOps(hold.read, status.write) })
    if (!result.ok)
      throw new PuzzledError(
        'kernel-refused',
        `Cannot start a waiting process: ${result.op.name}: ${result.errnoName}`,
      )
    return {
      pid: result.pid,
      release: () => {
        closeSync(hold.write)
        waitPidfd(result.pidfd, { block: true })
        closeSync(result.pidfd)
      },
    }
  } catch (error) {
    closeSync(hold.write)
    throw error
  } finally {
    for (const end of [hold.read, status.read, status.write]) closeSync(end)
  }
}

/** Node's own descriptors 0 to 2 are close-on-exec; `cat` ends at once when one of them is missing. */
const waitingOps = (input: number, status: number) => [
  ...[0, 1, 2].map((number) => call(`set descriptor ${number} to the pipe`, 'dup3', input, number, 0)),
  call('keep the status pipe for init', 'fcntl', status, F_SETFD, 0),
  call(
    'execute init',
    'execveat',
    initExecutable(),
    cstring(''),
    { vector: ['puzzled-init', String(status), '-', 'cat'].map(cstring) },
    { vector: [cstring('PATH=/usr/bin:/bin')] },
    AT_EMPTY_PATH,
  ),
]
