import { listDirectory } from '../kernel/getdents.ts'
import { close, O, openat, openRoot, S, withFd } from '../kernel/paths.ts'
import { isDirectory, tryStatAt } from '../kernel/statx.ts'
import { errnoOf } from '../lib/errors.ts'
import { kindOf, readAttributes } from './diff-node.ts'

const DIRECTORY = O.RDONLY | O.DIRECTORY
const MARKS = 'trusted.overlay.'

/** Deeper trees are not counted further; the diff makes a finding of them. */
const MOST_LEVELS = 1_000

export interface DeletionQuestion {
  readonly upper: string
  readonly base: string
  /** Counting ends here: what is used up need not be known exactly. */
  readonly most: number
}

/**
 * How many paths of a base are gone in a layer, as the changeset would count them: a directory counts with everything
 * that was below it. Both sides may change under the walk; no symbolic link is followed.
 */
export function countDeletions({ upper, base, most }: DeletionQuestion): number {
  return withFd(openRoot(upper), (layer) =>
    withFd(openRoot(base), (below) => {
      const walk = new DeletionWalk(most)
      walk.level(layer, below, true, 1)
      return walk.count
    }),
  )
}

class DeletionWalk {
  readonly #most: number
  count = 0

  constructor(most: number) {
    this.#most = most
  }

  /** One directory that both sides have. An opaque one hides all of the base that it has not itself. */
  level(layer: number, base: number, merged: boolean, depth: number): void {
    const seen = new Set<string>()
    for (const { name } of listDirectory(layer)) {
      if (this.count >= this.#most) return
      seen.add(name.toString('latin1'))
      this.#entry(layer, base, name, merged, depth)
    }
    if (merged) return
    for (const { name } of listDirectory(base))
      if (!seen.has(name.toString('latin1'))) this.#gone(base, name, depth)
  }

  #entry(layer: number, base: number, name: Buffer, merged: boolean, depth: number): void {
    const stat = tryStatAt(layer, name)
    if (stat === undefined) return
    if (kindOf(stat) === 'whiteout') this.#gone(base, name, depth)
    else if (!isDirectory(stat)) this.#below(base, name, depth)
    else
      inside(base, name, (under) =>
        inside(layer, name, (over) => {
          const shows = merged && !readAttributes(over, MARKS).opaque
          if (depth < MOST_LEVELS) this.level(over, under, shows, depth + 1)
        }),
      )
  }

  #gone(base: number, name: Buffer, depth: number): void {
    const stat = tryStatAt(base, name)
    if (stat === undefined || kindOf(stat) === 'whiteout') return
    this.count++
    if ((stat.mode & S.IFMT) === S.IFDIR) this.#below(base, name, depth)
  }

  /** Everything in a directory of the base that is a file now, or nothing. */
  #below(base: number, name: Buffer, depth: number): void {
    if (depth >= MOST_LEVELS) return
    inside(base, name, (dir) => {
      for (const entry of listDirectory(dir)) {
        if (this.count >= this.#most) return
        this.#gone(dir, entry.name, depth + 1)
      }
    })
  }
}

/** Nothing happens in what is no directory, or no longer there. */
function inside(dir: number, name: Buffer, act: (fd: number) => void): void {
  let fd: number
  try {
    fd = openat(dir, name, DIRECTORY)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return
    throw error
  }
  try {
    act(fd)
  } finally {
    close(fd)
  }
}
