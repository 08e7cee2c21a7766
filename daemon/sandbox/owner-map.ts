import { openSync, writeFileSync } from 'node:fs'
import { PuzzledError } from '../lib/errors.ts'
import { startHolder } from './holder.ts'

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

/** A namespace needs a first process to be given its map. */
async function makeNamespace(from: number, to: number): Promise<number> {
  const holder = await startHolder(['NEWUSER']).catch((cause: unknown) => {
    throw new PuzzledError('feature-missing', 'Cannot make a user namespace', {
      cause,
      hint: 'user.max_user_namespaces must not be 0; or branch a directory that is not root’s',
    })
  })
  try {
    for (const file of ['uid_map', 'gid_map']) writeFileSync(`/proc/${holder.pid}/${file}`, swapMap(from, to))
    return openSync(`/proc/${holder.pid}/ns/user`, 'r')
  } finally {
    holder.release()
  }
}
