import type { ContentPair, ContentSide } from '../contract/engine.ts'
import { pread } from '../kernel/file-data.ts'
import { close, O, openat, openRoot, readlinkat, withFd } from '../kernel/paths.ts'
import { statFd, tryStatAt } from '../kernel/statx.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { kindOf, readAttributes } from './diff-node.ts'
import type { LayerMount } from './overlay.ts'

/** Content of one path in the base and in the branch, found without mounting anything. */
export function readBothSides(mount: LayerMount, path: Uint8Array, limit: number): ContentPair {
  const names = splitNames(path)
  const layers = [mount.upper, ...mount.lowers.slice(0, -1)]
  return {
    before: readIn([mount.base], names, limit),
    after: readIn([...layers, mount.base], names, limit),
  }
}

function splitNames(path: Uint8Array): Buffer[] {
  const names = Buffer.from(path)
    .toString('latin1')
    .split('/')
    .map((name) => Buffer.from(name, 'latin1'))
  const bad = names.some(
    (name) => name.length === 0 || name.equals(Buffer.from('.')) || name.equals(Buffer.from('..')),
  )
  if (bad)
    throw new PuzzledError('usage', 'A path of a changeset is relative and has no empty, "." or ".." parts')
  return names
}

/** Goes down the layers together, as overlayfs does: the topmost that has the name decides. */
function readIn(roots: readonly string[], names: readonly Buffer[], limit: number): ContentSide | null {
  let dirs = roots.map((root) => openRoot(root))
  try {
    for (const name of names.slice(0, -1)) {
      const next = openMerged(dirs, name)
      for (const fd of dirs) close(fd)
      dirs = next
    }
    const last = names.at(-1)
    return last === undefined ? null : readTopmost(dirs, last, limit)
  } finally {
    for (const fd of dirs) close(fd)
  }
}

function openMerged(dirs: readonly number[], name: Buffer): number[] {
  const opened: number[] = []
  for (const dir of dirs) {
    const stat = tryStatAt(dir, name)
    if (stat === undefined) continue
    if (kindOf(stat) !== 'dir') break
    const fd = openat(dir, name, O.RDONLY | O.DIRECTORY)
    opened.push(fd)
    if (readAttributes(fd, 'trusted.overlay.').opaque) break
  }
  return opened
}

function readTopmost(dirs: readonly number[], name: Buffer, limit: number): ContentSide | null {
  for (const dir of dirs) {
    const stat = tryStatAt(dir, name)
    if (stat === undefined) continue
    const kind = kindOf(stat)
    if (kind === 'symlink') {
      const target = readlinkat(dir, name)
      return { bytes: target.subarray(0, limit), size: target.length }
    }
    return kind === 'file' ? readFile(dir, name, limit) : null
  }
  return null
}

function readFile(dir: number, name: Buffer, limit: number): ContentSide | null {
  try {
    return withFd(openat(dir, name, O.RDONLY | O.NONBLOCK), (fd) => {
      const stat = statFd(fd)
      if (kindOf(stat) !== 'file') return null
      const bytes = Buffer.alloc(Math.min(limit, stat.size))
      return { bytes: bytes.subarray(0, pread(fd, bytes, 0)), size: stat.size }
    })
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ELOOP') return null
    throw error
  }
}
