// pure
import { errnoOf, PuzzledError } from './errors.ts'

/** Where the store lies and which filesystems can hold one. */

/** Filesystems that keep what was synced, rename atomically and have the extended attributes that overlays need. */
const SUITABLE: readonly string[] = ['ext4', 'xfs', 'btrfs', 'f2fs', 'zfs', 'bcachefs']

const WHY_NOT: Readonly<Record<string, string>> = {
  tmpfs: 'loses everything at a reboot, also commits that were reported as done',
  ramfs: 'loses everything at a reboot, also commits that were reported as done',
  nfs: 'is on the network: it cannot hold the upper layer of an overlay, and a lock or a rename may be lost',
  cifs: 'is on the network: it cannot hold the upper layer of an overlay, and a lock or a rename may be lost',
  smb2: 'is on the network: it cannot hold the upper layer of an overlay, and a lock or a rename may be lost',
  '9p': 'belongs to another machine: it lacks the extended attributes that overlays need',
  ceph: 'is on the network: it cannot hold the upper layer of an overlay',
  fuse: 'is served by a program (FUSE), whose promises about fsync and rename nobody can check',
  overlay: 'is itself an overlay (as in a container): an overlay cannot be the upper layer of another',
  ecryptfs: 'cannot hold the upper layer of an overlay',
  vfat: 'has neither owners nor extended attributes',
  exfat: 'has neither owners nor extended attributes',
  squashfs: 'is read-only',
  iso9660: 'is read-only',
}

/** `/var/lib/puzzled` for root, below XDG_STATE_HOME (or ~/.local/state) for everybody else. */
export function defaultStateDirectory(
  uid: number,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  if (uid === 0) return '/var/lib/puzzled'
  const home = environment.HOME
  const state = environment.XDG_STATE_HOME
  // The specification tells to ignore a relative path.
  if (state?.startsWith('/') === true) return `${state}/puzzled`
  if (home?.startsWith('/') === true) return `${home}/.local/state/puzzled`
  throw new PuzzledError('usage', 'Neither XDG_STATE_HOME nor HOME is an absolute path', {
    hint: 'Name the state directory with --state-dir.',
  })
}

/**
 * Why a store cannot be on this filesystem, or undefined. `volatileAllowed` (PUZZLED_ALLOW_VOLATILE_STATE=1) is for tests and
 * throw-away machines: a store on tmpfs works and is lost at a reboot.
 */
export function unsuitableState(
  path: string,
  filesystem: string,
  volatileAllowed = false,
): PuzzledError | undefined {
  if (SUITABLE.includes(filesystem) || (volatileAllowed && filesystem === 'tmpfs')) return undefined
  const why = WHY_NOT[filesystem] ?? 'is not known to keep what was synced'
  const other = `Use --state-dir with a directory on ${SUITABLE.slice(0, 3).join(', ')} or another local filesystem.`
  const hint =
    filesystem === 'tmpfs'
      ? `${other} PUZZLED_ALLOW_VOLATILE_STATE=1 accepts that branches and commits in flight are lost at a reboot.`
      : other
  return new PuzzledError(
    'state-unsuitable',
    `The state directory "${path}" is on ${filesystem}, which ${why}`,
    {
      hint,
      data: { path, filesystem },
    },
  )
}

const WHAT: Readonly<Record<string, string>> = {
  ENOTDIR: 'it is not a directory',
  EEXIST: 'it is not a directory',
  EISDIR: 'it is not a file',
  EIO: 'the disk cannot be read (EIO)',
  ELOOP: 'it is a symbolic link',
  EROFS: 'the filesystem is read-only',
}

/** Why the system refused a place of the store, in words where there are some. */
export const refusalOf = (errno: string): string => WHAT[errno] ?? errno

/** What the system refused within the store is about the store, in a sentence; any other error is left as it is. */
export function unreadableState(error: unknown, directory: string): unknown {
  const errno = errnoOf(error)
  const path = error instanceof Error ? (error as { path?: unknown }).path : undefined
  if (errno === undefined || typeof path !== 'string') return error
  if (path !== directory && !path.startsWith(`${directory}/`)) return error
  return unusablePart(path, errno)
}

export function unusablePart(path: string, errno: string): PuzzledError {
  const code = errno === 'ENOSPC' || errno === 'EDQUOT' ? 'no-space' : 'state-unreadable'
  return new PuzzledError(code, `Cannot use "${path}" of the store: ${refusalOf(errno)}`, {
    hint: 'Put back what belongs there, or name another store with --state-dir.',
    data: { path, errno },
  })
}
