// pure
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import { MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY } from '../kernel/uapi/index.ts'
import {
  attach,
  call,
  cloneMount,
  close,
  configure,
  createFile,
  createFilesystem,
  cstring,
  makeCharDevice,
  makeDirectory,
  makeLink,
  mountFilesystem,
  openBelow,
  openFilesystem,
  setMountAttributes,
  slot,
} from './calls.ts'
import { coverOf, type Place } from './places.ts'
import { mountSlot, quoted, ROOT, relative, SHIELDED, STAGING, sourceSlot, targetSlot } from './root-slots.ts'

/** The filesystems that are made for the agent rather than shown to it: tmpfs, proc, devices, replaced files. */

export function newTmpfs(
  what: string,
  store: string,
  options: { mode: number; size: string; uid?: number; gid?: number },
  attributes: number,
): SpawnOp[] {
  const context = `context of ${store}`
  const values = Object.entries({ ...options, mode: options.mode.toString(8) })
  return [
    openFilesystem(`open a tmpfs for ${what}`, 'tmpfs', context),
    ...values.map(([key, value]) =>
      configure(`set ${key}=${value} for ${what}`, context, key, String(value)),
    ),
    createFilesystem(`create the tmpfs for ${what}`, context),
    mountFilesystem(`mount the tmpfs for ${what}`, context, attributes, store),
  ]
}

export function procOps(mount: string): SpawnOp[] {
  const attributes = SHIELDED | MOUNT_ATTR_NOEXEC
  return [
    openFilesystem('open a new proc', 'proc', 'context of proc'),
    createFilesystem('create the new proc', 'context of proc'),
    mountFilesystem('mount the new proc', 'context of proc', attributes, mount),
  ]
}

const DEVICES = [
  ['null', 1, 3],
  ['zero', 1, 5],
  ['full', 1, 7],
  ['random', 1, 8],
  ['urandom', 1, 9],
  ['tty', 5, 0],
] as const

const DEV_LINKS = [
  ['ptmx', 'pts/ptmx'],
  ['fd', '/proc/self/fd'],
  ['stdin', '/proc/self/fd/0'],
  ['stdout', '/proc/self/fd/1'],
  ['stderr', '/proc/self/fd/2'],
] as const

/** Nodes are made, not bound: nothing of the host's /dev is looked at. The agent has no CAP_MKNOD to make more. */
export function devOps(mount: string): SpawnOp[] {
  return [
    ...newTmpfs('"/dev"', mount, { mode: 0o755, size: '64k' }, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
    ...DEVICES.map(([name, major, minor]) => makeCharDevice(mount, name, major, minor)),
    ...DEV_LINKS.map(([name, to]) => makeLink(`link "/dev/${name}" to "${to}"`, mount, name, to)),
    makeDirectory('make directory "/dev/pts"', mount, 'pts', 0o755),
  ]
}

/** A devpts instance of the agent's own: the daemon holds the other end of its first terminal. */
export const terminalOps = (terminals: SpawnArg): SpawnOp[] => [
  openBelow('open the mount point "/dev/pts"', ROOT, '/dev/pts', targetSlot('/dev/pts')),
  attach('mount the terminals on "/dev/pts"', terminals, targetSlot('/dev/pts')),
]

type FilePlace = Extract<Place, { kind: 'file' }>

/** Content that replaces a file of the host: written to the new root's tmpfs, bound over it, its own name removed. */
export function fileOps(place: FilePlace, placed: readonly Place[]): SpawnOp[] {
  const [mount, target] = [mountSlot(place.path), targetSlot(place.path)]
  const shown = quoted(place.path)
  const made = `content of ${place.path}`
  const cover = coverOf(place.path, placed)
  const isOurs = cover === undefined || cover.kind === 'tmpfs'
  const created = isOurs
    ? [createFile(`make the file ${shown}`, ROOT, relative(place.path), 0o644, made)]
    : [createFile(`make the content of ${shown}`, STAGING, 'content', 0o644, made)]
  const written = call(`write the content of ${shown}`, 'write', slot(made), place.bytes, place.bytes.length)
  const closed = close(`the content of ${shown}`, made)
  if (isOurs) return [...created, written, closed]
  return [
    ...created,
    written,
    closed,
    openBelow(`open the content of ${shown}`, STAGING, 'content', sourceSlot(place.path)),
    openBelow(`open ${shown}`, ROOT, place.path, target),
    cloneMount(`clone the content of ${shown}`, sourceSlot(place.path), mount, false),
    setMountAttributes(
      `make ${shown} read-only`,
      mount,
      MOUNT_ATTR_RDONLY | SHIELDED | MOUNT_ATTR_NOEXEC,
      false,
    ),
    attach(`bind ${shown}`, slot(mount), target),
    call(`remove the name of the content of ${shown}`, 'unlinkat', slot(STAGING), cstring('content'), 0),
  ]
}
