import { realpathSync } from 'node:fs'
import type { BaseRecord, Requester } from '../contract/branch.ts'
import { asFileUser } from '../kernel/credentials.ts'
import { fstatfs } from '../kernel/file-data.ts'
import { filesystemId } from '../kernel/filesystem-id.ts'
import { readMounts } from '../kernel/mount.ts'
import { isBelow, KERNEL_FILESYSTEMS, type MountEntry, mountsBelow } from '../kernel/mountinfo.ts'
import { O, openRoot, withFd } from '../kernel/paths.ts'
import { statFd } from '../kernel/statx.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { type FilesystemMark, filesystemMark, isSameFilesystem } from './same-filesystem.ts'

/** Filesystems that hold no files of people, or that overlayfs cannot look up in: never forked. */
const NOT_FORKED: ReadonlySet<string> = new Set([...KERNEL_FILESYSTEMS, 'devtmpfs', 'devpts', 'autofs'])

/**
 * Checks the bases and adds one for every mount below them: an overlay does not see what is mounted inside its lower
 * directory, so each real mount becomes a base of its own and everything else is named as read-only, or stays hidden where
 * it would show the host's processes and namespaces. The cost depends on the number of bases and mounts, never on what is
 * in them. Paths are looked at with the requester's rights: whoever cannot reach a directory must not learn from root
 * whether it exists, and gets no branch of it.
 */
export function resolveBases(paths: readonly string[], store: string, requester: Requester): BaseRecord[] {
  if (paths.length === 0) throw new PuzzledError('base-invalid', 'A branch needs at least one base')
  const real = realpathSync(store)
  const mounts = readMounts()
  return asFileUser(requester, () => {
    const asked = paths.map((path) => canonical(path))
    for (const path of asked) refuseOverlap(path, asked, real)
    const found: BaseRecord[] = []
    for (const path of asked) {
      const below = mountsBelow(mounts, Buffer.from(path)).filter((mount) => !insideStore(mount, real))
      const base = describe(path, below)
      found.push(base)
      for (const nested of base.nested)
        if (nested.handling === 'overlay') found.push(describe(nested.path, []))
    }
    return found
  })
}

function canonical(path: string): string {
  if (!path.startsWith('/'))
    throw new PuzzledError('base-invalid', `Base ${JSON.stringify(path)} is not an absolute path`)
  try {
    return realpathSync(path)
  } catch (cause) {
    const why = errnoOf(cause) === 'ENOENT' ? 'does not exist' : `cannot be resolved (${errnoOf(cause)})`
    throw new PuzzledError('base-invalid', `Base "${path}" ${why}`, { data: { path } })
  }
}

function refuseOverlap(path: string, all: readonly string[], store: string): void {
  const bytes = Buffer.from(path)
  const real = Buffer.from(store)
  const reason =
    path === '/'
      ? 'is the root of the system; name the directories that the agent works in'
      : bytes.equals(real)
        ? 'is the store itself'
        : isBelow(real, bytes)
          ? `contains the store (${store})`
          : isBelow(bytes, real)
            ? `lies inside the store (${store})`
            : undefined
  if (reason !== undefined)
    throw new PuzzledError('base-invalid', `Base "${path}" ${reason}`, { data: { path } })
  const overlap = all.find((other) => other !== path && isBelow(bytes, Buffer.from(other)))
  if (overlap !== undefined || all.filter((other) => other === path).length > 1)
    throw new PuzzledError('base-invalid', `Base "${path}" is covered by base "${overlap ?? path}" already`, {
      data: { path },
    })
}

const insideStore = (mount: MountEntry, store: string): boolean => {
  const real = Buffer.from(store)
  return mount.target.equals(real) || isBelow(mount.target, real)
}

type Handling = BaseRecord['nested'][number]['handling']

/** What is done with the mounts below a base, outermost first. What is below a hidden one is hidden with it. */
function nestedIn(below: readonly MountEntry[]): BaseRecord['nested'] {
  const hidden: Buffer[] = []
  return below.map((mount) => {
    const inside = hidden.some((above) => isBelow(mount.target, above))
    const how = inside ? 'hidden' : handling(mount)
    if (how === 'hidden') hidden.push(mount.target)
    return { path: mount.target.toString('utf8'), handling: how }
  })
}

/** A name that is not UTF-8 cannot be a base: it stays read-only. */
function handling(mount: MountEntry): Handling {
  if (KERNEL_FILESYSTEMS.has(mount.type)) return 'hidden'
  const readable = Buffer.from(mount.target.toString('utf8')).equals(mount.target)
  if (!readable || NOT_FORKED.has(mount.type) || mount.options.includes('ro')) return 'read-only'
  return isDirectoryAt(mount.target) ? 'overlay' : 'read-only'
}

function isDirectoryAt(path: Uint8Array): boolean {
  try {
    return withFd(openRoot(path, O.PATH), () => true)
  } catch (error) {
    if (['ENOTDIR', 'EACCES', 'ENOENT', 'ESTALE'].includes(errnoOf(error) ?? '')) return false
    throw error
  }
}

function describe(path: string, below: readonly MountEntry[]): BaseRecord {
  const nested = nestedIn(below)
  return withFd(openBase(path), (fd) => {
    const { type } = fstatfs(fd)
    if (NOT_FORKED.has(type))
      throw new PuzzledError('base-invalid', `Base "${path}" is on ${type}, which cannot be forked`)
    return { path, dev: statFd(fd).dev, filesystem: type, nested }
  })
}

function openBase(path: string, flags: number = O.PATH): number {
  try {
    return openRoot(path, flags)
  } catch (cause) {
    const why = errnoOf(cause) === 'ENOTDIR' ? 'is not a directory' : `cannot be opened (${errnoOf(cause)})`
    throw new PuzzledError('base-invalid', `Base "${path}" ${why}`, { data: { path } })
  }
}

const markOf = (fd: number): FilesystemMark => filesystemMark(statFd(fd).dev, filesystemId(fd))

/** The same base with what its filesystem is: that is asked with the daemon's rights, through a directory that is open. */
export function identified(base: BaseRecord): BaseRecord {
  const mark = withFd(openBase(base.path, O.RDONLY | O.DIRECTORY), markOf)
  if (mark.dev === base.dev) return { ...base, ...mark }
  throw new PuzzledError('base-invalid', `Base "${base.path}" was mounted over while it was looked at`)
}

/** Refuses a base that is not where it was when the branch was forked: gone, or another filesystem mounted there. */
export function verifyBase(base: BaseRecord): void {
  const now = withFd(openBase(base.path, O.RDONLY | O.DIRECTORY), markOf)
  if (!isSameFilesystem(base, now))
    throw new PuzzledError('base-invalid', `Base "${base.path}" is on another filesystem than at fork time`, {
      hint: 'Mount it again as it was, or discard the branch.',
      data: { path: base.path, dev: now.dev, expected: base.dev },
    })
}
