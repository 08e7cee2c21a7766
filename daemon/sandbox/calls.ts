// pure
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  AT_RECURSIVE,
  FSCONFIG_CMD_CREATE,
  FSCONFIG_SET_FLAG,
  FSCONFIG_SET_STRING,
  FSOPEN_CLOEXEC,
  MOUNT_ATTR_IDMAP,
  MOVE_MOUNT_F_EMPTY_PATH,
  MOVE_MOUNT_T_EMPTY_PATH,
  O_CLOEXEC,
  O_CREAT,
  O_EXCL,
  O_PATH,
  O_WRONLY,
  OPEN_TREE_CLONE,
  RESOLVE_IN_ROOT,
  RESOLVE_NO_MAGICLINKS,
  RESOLVE_NO_SYMLINKS,
  S_IFCHR,
} from '../kernel/uapi/index.ts'

/** The system calls of the plan, one builder each: a name for people, and arguments as the kernel wants them. */

export const cstring = (value: string): Uint8Array => Buffer.from(`${value}\0`, 'utf8')
export const slot = (name: string): SpawnArg => ({ slot: name })

export const call = (name: string, nr: string, ...args: SpawnArg[]): PlainOp => ({
  name,
  call: nr,
  args,
  expect: 'ok',
})

/** Written out: a plan has hundreds of these, and copying an object by spreading it was a tenth of planning. */
export const storing = ({ name, call: nr, args, expect }: PlainOp, store: string): SpawnOp => ({
  name,
  call: nr,
  args,
  expect,
  store,
})

type PlainOp = Omit<SpawnOp, 'store' | 'patch'>

/** Cut out of Node's pool, as strings are; see `Addresses` of the layout. */
const words64 = (...values: readonly number[]): Uint8Array => {
  const bytes = Buffer.allocUnsafe(values.length * 8)
  for (const [index, value] of values.entries()) {
    bytes.writeUInt32LE(value >>> 0, index * 8)
    bytes.writeUInt32LE(Math.floor(value / 2 ** 32), index * 8 + 4)
  }
  return bytes
}

/** Opens a place for use as a mount's source or target; no link on the way is followed. */
export function openPath(name: string, path: string, store: string): SpawnOp {
  const how = words64(O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
  return storing(call(name, 'openat2', AT_FDCWD, cstring(path), how, how.length), store)
}

/** Opens a place below another one; nothing, not even `..`, leads out of it, and no link is followed. */
export function openBelow(name: string, below: string, path: string, store: string): SpawnOp {
  const how = words64(O_PATH | O_CLOEXEC, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
  const relative = path.replace(/^\/+/, '') || '.'
  return storing(call(name, 'openat2', slot(below), cstring(relative), how, how.length), store)
}

/** A copy of the mount (and of those beneath it) at an open place, attached nowhere. */
export function cloneMount(name: string, source: string, store: string, recursive: boolean): SpawnOp {
  const flags = OPEN_TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0)
  return storing(call(name, 'open_tree', slot(source), cstring(''), flags), store)
}

export function setMountAttributes(name: string, mount: string, set: number, recursive: boolean): SpawnOp {
  const attributes = words64(set, 0, 0, 0)
  const flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0)
  return call(name, 'mount_setattr', slot(mount), cstring(''), flags, attributes, attributes.length)
}

const USERNS_FD_OFFSET = 24

/** Makes owners appear shifted by a user namespace's map; what is written is shifted back. */
export function mapOwners(name: string, mount: string, userNamespace: SpawnArg): SpawnOp {
  const attributes = words64(MOUNT_ATTR_IDMAP, 0, 0, typeof userNamespace === 'number' ? userNamespace : 0)
  const op = call(
    name,
    'mount_setattr',
    slot(mount),
    cstring(''),
    AT_EMPTY_PATH,
    attributes,
    attributes.length,
  )
  if (userNamespace === null || typeof userNamespace !== 'object' || !('slot' in userNamespace)) return op
  return { ...op, patch: [{ arg: 3, offset: USERNS_FD_OFFSET, slot: userNamespace.slot }] }
}

/** Attaches a detached mount at an open place. */
export const attach = (name: string, mount: SpawnArg, target: string): SpawnOp =>
  call(
    name,
    'move_mount',
    mount,
    cstring(''),
    slot(target),
    cstring(''),
    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
  )

export const openFilesystem = (name: string, type: string, store: string): SpawnOp =>
  storing(call(name, 'fsopen', cstring(type), FSOPEN_CLOEXEC), store)

export const configure = (name: string, filesystem: string, key: string, value: string | null): SpawnOp =>
  value === null
    ? call(name, 'fsconfig', slot(filesystem), FSCONFIG_SET_FLAG, cstring(key), null, 0)
    : call(name, 'fsconfig', slot(filesystem), FSCONFIG_SET_STRING, cstring(key), cstring(value), 0)

/** An open file that was written would keep its mount from becoming read-only. */
export const close = (what: string, of: string): SpawnOp => call(`close ${what}`, 'close', slot(of))

export const createFilesystem = (name: string, filesystem: string): SpawnOp =>
  call(name, 'fsconfig', slot(filesystem), FSCONFIG_CMD_CREATE, null, null, 0)

export const mountFilesystem = (
  name: string,
  filesystem: string,
  attributes: number,
  store: string,
): SpawnOp => storing(call(name, 'fsmount', slot(filesystem), FSOPEN_CLOEXEC, attributes), store)

export const makeDirectory = (name: string, below: string, path: string, mode: number): SpawnOp =>
  call(name, 'mkdirat', slot(below), cstring(path), mode)

export const makeLink = (name: string, below: string, path: string, target: string): SpawnOp =>
  call(name, 'symlinkat', cstring(target), slot(below), cstring(path))

export const makeCharDevice = (below: string, path: string, major: number, minor: number): SpawnOp =>
  call(`make /dev/${path}`, 'mknodat', slot(below), cstring(path), S_IFCHR | 0o666, (major << 8) | minor)

export const createFile = (name: string, below: string, path: string, mode: number, store: string): SpawnOp =>
  storing(
    call(name, 'openat', slot(below), cstring(path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode),
    store,
  )

export const changeDirectory = (name: string, to: string): SpawnOp => call(name, 'fchdir', slot(to))
