import { readFileSync } from 'node:fs'
import { cstring, KernelError, syscall, trySyscall } from './ffi.ts'
import { AT } from './file-numbers.ts'
import { type MountEntry, parseMountinfo } from './mountinfo.ts'
import { close } from './paths.ts'
import * as uapi from './uapi/mount.ts'
import { NR } from './uapi/syscalls.ts'

/**
 * The mount calls on descriptors. A mount is made detached, checked and restricted while nobody can reach it, and only
 * then moved to its place.
 *
 * SAFETY, for every call in this file: synchronous on the calling thread; strings end in NUL and outlive the call.
 */

/** Attributes of a mount, as in mount_setattr(2). */
export const MOUNT_ATTR = {
  RDONLY: uapi.MOUNT_ATTR_RDONLY,
  NOSUID: uapi.MOUNT_ATTR_NOSUID,
  NODEV: uapi.MOUNT_ATTR_NODEV,
  NOEXEC: uapi.MOUNT_ATTR_NOEXEC,
  NOSYMFOLLOW: uapi.MOUNT_ATTR_NOSYMFOLLOW,
} as const

export const PROPAGATION = {
  PRIVATE: uapi.MS_PRIVATE,
  SLAVE: uapi.MS_SLAVE,
  SHARED: uapi.MS_SHARED,
} as const

export const UMOUNT = {
  FORCE: uapi.MNT_FORCE,
  DETACH: uapi.MNT_DETACH,
  NOFOLLOW: uapi.UMOUNT_NOFOLLOW,
} as const

export interface FilesystemPlan {
  type: string
  source?: string
  /** In order: `[key]` is a flag, `[key, value]` a string. A value is at most 255 bytes: the kernel cuts there. */
  options: readonly (readonly [string] | readonly [string, string])[]
  /** `MOUNT_ATTR` bits of the new mount. */
  attributes: number
}

/** Makes a filesystem and a detached mount of it; the result is the mount's descriptor. */
export function mountDetached(plan: FilesystemPlan): number {
  // SAFETY: see the head of the file.
  const context = syscall('fsopen', NR.fsopen, cstring(plan.type), uapi.FSOPEN_CLOEXEC)
  try {
    configure(context, plan)
    // SAFETY: three ints.
    return syscall('fsmount', NR.fsmount, context, uapi.FSMOUNT_CLOEXEC, plan.attributes)
  } finally {
    close(context)
  }
}

function configure(context: number, plan: FilesystemPlan): void {
  const options =
    plan.source === undefined ? plan.options : [['source', plan.source] as const, ...plan.options]
  for (const [key, value] of options) {
    const command = value === undefined ? uapi.FSCONFIG_SET_FLAG : uapi.FSCONFIG_SET_STRING
    // SAFETY: see the head of the file; a flag takes a null value.
    const result = trySyscall(
      NR.fsconfig,
      context,
      command,
      cstring(key),
      value === undefined ? null : cstring(value),
      0,
    )
    if (result < 0) throw refusal(context, -result, [plan.type, key, value])
  }
  // SAFETY: the command takes neither key nor value.
  const created = trySyscall(NR.fsconfig, context, uapi.FSCONFIG_CMD_CREATE, null, null, 0)
  if (created < 0) throw refusal(context, -created, [plan.type, 'create'])
}

/** The kernel says why in words, one message per read, until ENODATA. */
function refusal(context: number, errno: number, args: readonly unknown[]): KernelError {
  const messages: string[] = []
  const buffer = Buffer.alloc(4096)
  for (;;) {
    // SAFETY: writes at most the buffer's length.
    const length = trySyscall(NR.read, context, buffer, buffer.length)
    if (length <= 0) break
    messages.push(buffer.toString('utf8', 2, length).trim())
  }
  return new KernelError('fsconfig', errno, [...args.filter((arg) => arg !== undefined), ...messages])
}

/** A descriptor of what is mounted at a path; `clone` makes it a detached copy, `recursive` with all below. */
export function openTree(dir: number, path: string, how: { clone: boolean; recursive: boolean }): number {
  const flags =
    uapi.OPEN_TREE_CLOEXEC |
    (how.clone ? uapi.OPEN_TREE_CLONE : 0) |
    (how.recursive ? AT.RECURSIVE : 0) |
    AT.SYMLINK_NOFOLLOW |
    (path === '' ? AT.EMPTY_PATH : 0)
  // SAFETY: see the head of the file.
  return syscall('open_tree', NR.open_tree, dir, cstring(path), flags)
}

/** A detached view of one file or directory that nothing can be written, executed or opened as a device through. */
export function mountReadOnly(path: string): number {
  const mount = openTree(AT.FDCWD, path, { clone: true, recursive: false })
  const { RDONLY, NOSUID, NODEV, NOEXEC } = MOUNT_ATTR
  try {
    mountSetattr(mount, { set: RDONLY | NOSUID | NODEV | NOEXEC, propagation: PROPAGATION.PRIVATE })
    return mount
  } catch (error) {
    close(mount)
    throw error
  }
}

/** Attaches a detached mount at the directory that `target` (O_PATH is enough) refers to. */
export function attach(mount: number, target: number): void {
  // SAFETY: both paths are empty and both descriptors are named by the flags.
  syscall(
    'move_mount',
    NR.move_mount,
    mount,
    cstring(''),
    target,
    cstring(''),
    uapi.MOVE_MOUNT_F_EMPTY_PATH | uapi.MOVE_MOUNT_T_EMPTY_PATH,
  )
}

/** Restricts (or frees) a mount, with everything below it when `recursive`. */
export function mountSetattr(
  mount: number,
  change: { set?: number; clear?: number; propagation?: number },
  recursive = false,
): void {
  const attributes = Buffer.alloc(uapi.mount_attr.size)
  attributes.writeBigUInt64LE(BigInt(change.set ?? 0), uapi.mount_attr.attr_set)
  attributes.writeBigUInt64LE(BigInt(change.clear ?? 0), uapi.mount_attr.attr_clr)
  attributes.writeBigUInt64LE(BigInt(change.propagation ?? 0), uapi.mount_attr.propagation)
  const flags = AT.EMPTY_PATH | (recursive ? AT.RECURSIVE : 0)
  // SAFETY: struct mount_attr is 32 bytes, only read.
  syscall('mount_setattr', NR.mount_setattr, mount, cstring(''), flags, attributes, attributes.length)
}

/** Unmounts for real: without `UMOUNT.DETACH` a busy mount is EBUSY, which is what a commit needs to hear. */
export function umount2(path: string | Uint8Array, flags: number = UMOUNT.NOFOLLOW): void {
  // SAFETY: see the head of the file.
  syscall('umount2', NR.umount2, cstring(path), flags)
}

export const readMounts = (): MountEntry[] => parseMountinfo(readFileSync('/proc/self/mountinfo'))
