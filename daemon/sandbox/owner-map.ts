import { closeSync, openSync, writeFileSync } from 'node:fs'
import { spawn } from '../kernel/clone.ts'
import { initExecutable } from '../kernel/init-program.ts'
import { waitPidfd } from '../kernel/pidfd.ts'
import { pipe } from '../kernel/pipe.ts'
import { AT_EMPTY_PATH, F_SETFD } from '../kernel/uapi/index.ts'
import { PuzzledError } from '../lib/errors.ts'
import { call, cstring } from './calls.ts'

const LAST_ID = 0xfffffffe
const known = new Map<string, Promise<number>>()

/**
 * A user namespace in which the ids `from` and `to` are swapped and all others stay as they are; its descriptor serves as
 * the map of ID-mapped mounts. Nobody ever runs in it. Made once per pair and kept for the life of the process.
 */
export function swappedOwners(from: number, to: number): Promise<number> {
  const key = `${from} ${to}`
  const made = known.get(key) ?? makeNamespace(from, to)
  known.set(key, made)
  made.catch(() => known.delete(key))
  return made
}

/** `uid_map` lines: first id inside, first id outside, count. A swap loses no id. */
export function swapMap(from: number, to: number): string {
  const [low, high] = from < to ? [from, to] : [to, from]
  const lines = [
    [0, 0, low],
    [low, high, 1],
    [low + 1, low + 1, high - low - 1],
    [high, low, 1],
    [high + 1, high + 1, LAST_ID - high],
  ] as const
  return lines
    .filter(([, , count]) => count > 0)
    .map((line) => `${line.join(' ')}\n`)
    .join('')
}

/** A namespace needs a first process to be given its map. It reads from a pipe until the descriptor is open. */
async function makeNamespace(from: number, to: number): Promise<number> {
  const [hold, status] = [pipe(), pipe()]
  const open = new Set([hold.read, hold.write, status.read, status.write])
  const close = (descriptor: number): void => {
    if (open.delete(descriptor)) closeSync(descriptor)
  }
  try {
    const result = await spawn({ namespaces: ['NEWUSER'], ops: waitingProcess(hold.read, status.write) })
    if (!result.ok)
      throw new PuzzledError(
        'feature-missing',
        `Cannot make a user namespace: ${result.op.name}: ${result.errnoName}`,
        { hint: 'user.max_user_namespaces must not be 0; or branch a directory that is not root’s' },
      )
    try {
      for (const file of ['uid_map', 'gid_map'])
        writeFileSync(`/proc/${result.pid}/${file}`, swapMap(from, to))
      return openSync(`/proc/${result.pid}/ns/user`, 'r')
    } finally {
      close(hold.write)
      waitPidfd(result.pidfd, { block: true })
      closeSync(result.pidfd)
    }
  } finally {
    for (const end of [...open]) close(end)
  }
}

const waitingProcess = (input: number, status: number) => [
  call('wait for the end of a pipe', 'dup3', input, 0, 0),
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
