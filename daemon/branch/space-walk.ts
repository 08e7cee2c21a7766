import { KernelError } from '../kernel/ffi.ts'
import { listDirectory } from '../kernel/getdents.ts'
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
export function measureTree(path: string): Use {
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
  const root = openRoot(path)
  const levels = [root]
  const waiting: Buffer[][] = []
  try {
    waiting.push(entriesOf(root))
    while (levels.length > 0) {
      const dir = levels.at(-1) ?? -1
      const name = waiting.at(-1)?.pop()
      if (name === undefined) {
        close(dir)
        levels.pop()
        waiting.pop()
        continue
      }
      const stat = tryStatAt(dir, name)
      if (stat === undefined) continue
      count(stat)
      if (!isDirectory(stat)) continue
      const below = openBelow(dir, name)
      if (below === undefined) continue
      levels.push(below)
      if (levels.length > MOST_LEVELS)
        throw new Error(`The layers are more than ${MOST_LEVELS} directories deep`)
      waiting.push(entriesOf(below))
    }
  } finally {
    for (const level of levels) close(level)
  }
  return { bytes, inodes }
}

const entriesOf = (dir: number): Buffer[] => listDirectory(dir).map(({ name }) => name)

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
