import { KernelError } from '../kernel/ffi.ts'
import { nextEntries } from '../kernel/getdents.ts'
import { close, O, openat, openRoot } from '../kernel/paths.ts'
import { isDirectory, type Stat, tryStatAt } from '../kernel/statx.ts'

/** What a tree takes on disk, as `du` would count it: blocks, and a hard-linked file once. */
export interface Use {
  readonly bytes: number
  readonly inodes: number
}

const DIRECTORY = O.RDONLY | O.DIRECTORY
const BLOCK_BYTES = 512

/**
 * One descriptor per level, so an agent that digs without end must be told apart from one that has used nothing: a tree
 * that is deeper cannot be measured, and the caller treats that as it treats any budget that it cannot read.
 */
const MOST_LEVELS = 1_000

/**
 * Measures a tree that changes under the walk: what goes away meanwhile counts nothing, and no symbolic link is followed.
 */
export function measureTree(path: string): Use
/** Null where there is more than `most`. */
export function measureTree(path: string, most: number): Use | null
export function measureTree(path: string, most = Number.POSITIVE_INFINITY): Use | null {
  const linked = new Set<number>()
  let [bytes, inodes] = [0, 0]
  const count = (stat: Stat): void => {
    if (stat.nlink > 1 && !isDirectory(stat)) {
      if (linked.has(stat.ino)) return
      linked.add(stat.ino)
    }
    bytes += stat.blocks * BLOCK_BYTES
    inodes++
  }
  const levels = [new Level(openRoot(path))]
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const name = level.next()
      const stat = name === undefined ? undefined : tryStatAt(level.fd, name)
      if (stat !== undefined) count(stat)
      if (inodes > most) return null
      if (name === undefined) {
        close(level.fd)
        levels.pop()
      } else if (stat !== undefined && isDirectory(stat)) {
        const below = openBelow(level.fd, name)
        if (below !== undefined) levels.push(new Level(below))
        if (levels.length > MOST_LEVELS)
          throw new Error(`The layers are more than ${MOST_LEVELS} directories deep`)
      }
    }
  } finally {
    for (const level of levels) close(level.fd)
  }
  return { bytes, inodes }
}

/** A directory that is read piece by piece: one of ten million files must not fill the memory. */
class Level {
  readonly fd: number
  #names: Buffer[] = []

  constructor(fd: number) {
    this.fd = fd
  }

  next(): Buffer | undefined {
    if (this.#names.length === 0) this.#names = nextEntries(this.fd).map(({ name }) => name)
    return this.#names.pop()
  }
}

/** Undefined for a directory that was removed or replaced since it was looked at. */
function openBelow(dir: number, name: Buffer): number | undefined {
  try {
    return openat(dir, name, DIRECTORY)
  } catch (error) {
    if (error instanceof KernelError && ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(error.errnoName ?? ''))
      return undefined
    throw error
  }
}
