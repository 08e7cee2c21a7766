import { closeSync, existsSync, mkdirSync, openSync, statfsSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { SpawnOp } from '../../contract/spawn.ts'
import { errnoOf } from '../../lib/errors.ts'
import { errnoName } from '../errno.ts'
import { fanotifyInit, fanotifyMark, readFanotify } from '../fanotify.ts'
import type { Finding } from '../feature-text.ts'
import { trySyscall } from '../ffi.ts'
import { projectQuota, setProject, setProjectLimits } from '../quota.ts'
import {
  FAN_CLASS_CONTENT,
  FAN_CLASS_NOTIF,
  FAN_CLOEXEC,
  FAN_CREATE,
  FAN_MARK_ADD,
  FAN_NONBLOCK,
  FAN_ONDIR,
  FAN_OPEN_EXEC_PERM,
  FAN_REPORT_DIR_FID,
  FAN_REPORT_NAME,
  FICLONE,
  FSCONFIG_CMD_CREATE,
  FSCONFIG_SET_FLAG,
  FSCONFIG_SET_STRING,
  MS_PRIVATE,
  MS_REC,
  NR,
  O_RDWR,
  XFS_SUPER_MAGIC,
} from '../uapi/index.ts'
import { failedCall, mapOwnIds, op, text } from './calls.ts'

/** All of these work in `folder`, a new directory on the store's filesystem that the caller removes. */

/** Mounts an overlay and changes a file through it: the change must be in the upper directory and nowhere else. */
async function overlayFailure(folder: string, layerKey: string, user: boolean): Promise<string | undefined> {
  const [lower, upper, work] = ['lower', 'upper', 'work'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  for (const directory of [folder, lower, upper, work]) mkdirSync(directory, { recursive: true })
  writeFileSync(join(lower, 'file'), 'old')
  const set = (key: string, value: string): SpawnOp =>
    op('fsconfig', [{ slot: 'context' }, FSCONFIG_SET_STRING, text(key), text(value), 0], {
      name: `set ${key}`,
    })
  const failed = await failedCall(user ? ['NEWUSER', 'NEWNS'] : ['NEWNS'], [
    ...(user ? mapOwnIds() : []),
    op('mount', [null, text('/'), null, MS_REC | MS_PRIVATE, null], { name: 'make / private' }),
    op('fsopen', [text('overlay'), 0], { store: 'context', name: 'fsopen overlay' }),
    set(layerKey, lower),
    set('upperdir', upper),
    set('workdir', work),
    ...(user ? [op('fsconfig', [{ slot: 'context' }, FSCONFIG_SET_FLAG, text('userxattr'), null, 0])] : []),
    op('fsconfig', [{ slot: 'context' }, FSCONFIG_CMD_CREATE, null, null, 0], { name: 'create overlay' }),
    op('fsmount', [{ slot: 'context' }, 0, 0], { store: 'mount' }),
    op('openat', [{ slot: 'mount' }, text('file'), O_RDWR], { name: 'write through the overlay' }),
  ])
  if (failed !== undefined) return failed
  return existsSync(join(upper, 'file')) ? undefined : 'the change did not reach the upper directory'
}

export async function probeOverlay(folder: string): Promise<Finding> {
  const failed = await overlayFailure(join(folder, 'one'), 'lowerdir+', false)
  if (failed === undefined) return { level: 2, detail: 'a file was copied up; layers are added one by one' }
  const older = await overlayFailure(join(folder, 'two'), 'lowerdir', false)
  if (older !== undefined) return { level: 0, detail: older }
  return {
    level: 1,
    detail: 'a file was copied up; lowerdir+ is not known',
    restriction: 'All layers of a branch must fit into one option of 255 bytes.',
    remedy: 'Boot Linux 6.5 or newer.',
  }
}

export async function probeUserxattr(folder: string): Promise<Finding> {
  const failed = await overlayFailure(join(folder, 'user'), 'lowerdir', true)
  return failed === undefined
    ? { level: 1, detail: 'a file was copied up in a user namespace' }
    : { level: 0, detail: failed }
}

/** Limits a project and writes over the limit. */
export function probeProjectQuota(folder: string): Finding {
  const tree = join(folder, 'project')
  mkdirSync(tree)
  const type = statfsSync(tree).type === XFS_SUPER_MAGIC ? 'xfs' : 'other'
  const directory = openSync(tree, 'r')
  try {
    const { enforced, detail } = projectQuota(directory, type)
    if (!enforced) return { level: 0, detail }
    const project = 0xfff00000 + (process.pid & 0xfffff)
    setProject(directory, project)
    setProjectLimits(directory, type, project, { bytes: 65536, inodes: 16 })
    try {
      writeFileSync(join(tree, 'file'), Buffer.alloc(1 << 20), { flush: true })
      return { level: 0, detail: 'a limit was set, and a file larger than it could be written' }
    } catch (error) {
      const errno = errnoOf(error)
      if (errno !== 'ENOSPC' && errno !== 'EDQUOT') throw error
      return { level: 1, detail: `writing over a limit ended with ${errno}` }
    } finally {
      setProjectLimits(directory, type, project, { bytes: 0, inodes: 0 })
    }
  } finally {
    closeSync(directory)
  }
}

export function probeReflink(folder: string): Finding {
  writeFileSync(join(folder, 'original'), Buffer.alloc(8192, 1))
  const source = openSync(join(folder, 'original'), 'r')
  const target = openSync(join(folder, 'clone'), 'w')
  try {
    // SAFETY: integers only; FICLONE takes the source's descriptor as its argument.
    const result = trySyscall(NR.ioctl, target, FICLONE, source)
    return result === 0
      ? { level: 1, detail: 'a file was cloned' }
      : { level: 0, detail: `FICLONE: ${errnoName(-result)}` }
  } finally {
    closeSync(source)
    closeSync(target)
  }
}

/** An event with a name arrives; and a permission mark (on a file of ours only) is accepted. */
export function probeFanotify(folder: string): Finding {
  const watched = join(folder, 'watched')
  mkdirSync(watched)
  const flags = FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_DIR_FID | FAN_REPORT_NAME
  const group = fanotifyInit(flags)
  try {
    fanotifyMark(group, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, -100, watched)
    mkdirSync(join(watched, 'new'))
    if (!readFanotify(group).some(({ mask }) => (mask & FAN_CREATE) !== 0))
      return { level: 0, detail: 'no event arrived' }
  } finally {
    closeSync(group)
  }
  writeFileSync(join(watched, 'file'), '')
  const failed = permissionFailure(join(watched, 'file'))
  if (failed === undefined) return { level: 2, detail: 'an event arrived; permission events are available' }
  return { level: 1, detail: failed, restriction: 'Executing a file cannot be made to ask first.' }
}

function permissionFailure(file: string): string | undefined {
  // SAFETY: integers only.
  const group = trySyscall(
    NR.fanotify_init,
    FAN_CLASS_CONTENT | FAN_CLOEXEC,
    constants.priority.PRIORITY_NORMAL,
  )
  if (group < 0) return `fanotify_init FAN_CLASS_CONTENT: ${errnoName(-group)}`
  try {
    fanotifyMark(group, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, -100, file)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    closeSync(group)
  }
}
