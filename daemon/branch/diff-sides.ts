import type { Requester } from '../contract/branch.ts'
import type { ContentPair, ContentSide } from '../contract/engine.ts'
import { accessError, asFileUser } from '../kernel/credentials.ts'
import { pread } from '../kernel/file-data.ts'
import { close, O, openat, openRoot, readlinkat, withFd } from '../kernel/paths.ts'
import { statFd, tryStatAt } from '../kernel/statx.ts'
import { R_OK } from '../kernel/uapi/open.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { openAll } from '../lib/open-all.ts'
import { kindOf, readAttributes } from './diff-node.ts'
import type { LayerMount } from './overlay.ts'

/**
 * Content of one path in the base and in the branch, found without mounting anything. Only of paths that the layers
 * touch: a branch is a way to look at what an agent did, not at everything that lies in its base. With a `reader`, what
 * that user could not read and does not own is told by its size alone.
 */
export function readBothSides(
  mount: LayerMount,
  path: Uint8Array,
  limit: number,
  reader: Requester | null,
): ContentPair {
  const names = splitNames(path)
  const layers = [mount.upper, ...mount.lowers.slice(0, -1)]
  if (!touches(layers, names))
    throw new PuzzledError('usage', `The branch does not touch "${Buffer.from(path).toString()}"`, {
      hint: 'Only what it would change can be looked at: puzzlectl diff --name-only',
    })
  return {
    before: readIn([mount.base], names, limit, reader),
    after: readIn([...layers, mount.base], names, limit, reader),
  }
}

/** Whether a layer has an entry for the path, or hides everything below one of its parents. */
function touches(layers: readonly string[], names: readonly Buffer[]): boolean {
  let dirs = openAll(layers, openRoot, close)
  try {
    for (const name of names) {
      const found = dirs.map((dir) => tryStatAt(dir, name))
      if (found.some((stat) => stat !== undefined && kindOf(stat) !== 'dir')) return true
      if (name === names.at(-1)) return found.some((stat) => stat !== undefined)
      const next = openMerged(dirs, name)
      for (const fd of dirs) close(fd)
      dirs = next
      if (dirs.some((fd) => readAttributes(fd, 'trusted.overlay.').opaque)) return true
    }
    return false
  } finally {
    for (const fd of dirs) close(fd)
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
function readIn(
  roots: readonly string[],
  names: readonly Buffer[],
  limit: number,
  reader: Requester | null,
): ContentSide | null {
  let dirs = openAll(roots, openRoot, close)
  try {
    for (const name of names.slice(0, -1)) {
      const next = openMerged(dirs, name)
      for (const fd of dirs) close(fd)
      dirs = next
    }
    const last = names.at(-1)
    return last === undefined ? null : readTopmost(dirs, last, limit, reader)
  } finally {
    for (const fd of dirs) close(fd)
  }
}

function openMerged(dirs: readonly number[], name: Buffer): number[] {
  const opened: number[] = []
  try {
    for (const dir of dirs) {
      const stat = tryStatAt(dir, name)
      if (stat === undefined) continue
      if (kindOf(stat) !== 'dir') break
      const fd = openat(dir, name, O.RDONLY | O.DIRECTORY)
      opened.push(fd)
      if (readAttributes(fd, 'trusted.overlay.').opaque) break
    }
    return opened
  } catch (error) {
    for (const fd of opened) close(fd)
    throw error
  }
}

function readTopmost(
  dirs: readonly number[],
  name: Buffer,
  limit: number,
  reader: Requester | null,
): ContentSide | null {
  for (const dir of dirs) {
    const stat = tryStatAt(dir, name)
    if (stat === undefined) continue
    const kind = kindOf(stat)
    if (kind === 'symlink') {
      const target = readlinkat(dir, name)
      return { bytes: target.subarray(0, limit), size: target.length }
    }
    return kind === 'file' ? readFile(dir, name, limit, reader) : null
  }
  return null
}

function readFile(dir: number, name: Buffer, limit: number, reader: Requester | null): ContentSide | null {
  try {
    return withFd(openat(dir, name, O.RDONLY | O.NONBLOCK), (fd) => {
      const stat = statFd(fd)
      if (kindOf(stat) !== 'file') return null
      if (reader !== null && stat.uid !== reader.uid && !mayRead(reader, dir, name))
        return { bytes: Buffer.alloc(0), size: stat.size, withheld: true }
      const bytes = Buffer.alloc(Math.min(limit, stat.size))
      return { bytes: bytes.subarray(0, pread(fd, bytes, 0)), size: stat.size }
    })
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ELOOP') return null
    throw error
  }
}

/** An owner could always give themselves the right; for everybody else the kernel is asked. */
function mayRead(reader: Requester, dir: number, name: Buffer): boolean {
  const errno = asFileUser(reader, () => accessError(dir, name, R_OK))
  if (errno === null) return true
  if (errno === 'EACCES' || errno === 'EPERM') return false
  throw new PuzzledError('kernel-refused', `Cannot ask whether "${name.toString()}" may be read: ${errno}`)
}
