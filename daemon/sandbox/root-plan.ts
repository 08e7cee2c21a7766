// pure
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import {
  AT_REMOVEDIR,
  MNT_DETACH,
  MOUNT_ATTR_NODEV,
  MOUNT_ATTR_NOEXEC,
  MOUNT_ATTR_NOSUID,
  MOUNT_ATTR_RDONLY,
  MS_PRIVATE,
  MS_REC,
} from '../kernel/uapi/index.ts'
import {
  attach,
  call,
  changeDirectory,
  cloneMount,
  configure,
  createFile,
  createFilesystem,
  cstring,
  makeCharDevice,
  makeDirectory,
  makeLink,
  mapOwners,
  mountFilesystem,
  openBelow,
  openFilesystem,
  openPath,
  setMountAttributes,
  slot,
} from './calls.ts'
import { coverOf, isFilePlace, missingDirectories, type OverlayLayers, type Place } from './places.ts'

export interface RootPlanInput {
  /** From `rootPlaces`. */
  readonly places: readonly Place[]
  readonly kernel: readonly [number, number]
  readonly agent: { readonly uid: number; readonly gid: number }
  /** Shifts the owner of the base onto the agent's uid while it looks at it; null when the agent is the owner. */
  readonly ownerMap: SpawnArg
  /** A devpts instance of the agent's own, mounted nowhere yet. */
  readonly terminals: SpawnArg
}

const ROOT = 'root'
const SHIELDED = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV

const relative = (path: string): string => path.slice(1)
const quoted = (path: string): string => JSON.stringify(path)
const sourceSlot = (path: string): string => `source of ${path}`

/**
 * Opens what the agent will see of the requester's files. Runs with the requester's file rights (see `identity.ts`):
 * a place that the requester cannot reach must not become visible because root mounted it.
 */
export const sourceOps = (places: readonly Place[]): SpawnOp[] =>
  places.flatMap((place) =>
    place.kind === 'overlay'
      ? [openPath(`open the base ${quoted(place.path)}`, place.layers.base, sourceSlot(place.path))]
      : place.kind === 'bind' && place.asRequester
        ? [openPath(`open ${quoted(place.source)}`, place.source, sourceSlot(place.path))]
        : [],
  )

/** Builds the agent's root beside the host's, leaves the host's behind, and makes the new one read-only. */
export function rootOps(input: RootPlanInput): SpawnOp[] {
  return [
    call('make mount propagation private', 'mount', null, cstring('/'), null, MS_REC | MS_PRIVATE, null),
    ...newTmpfs('the new root', ROOT, { mode: 0o755, size: '16m' }, SHIELDED),
    // Over "/": absolute paths still lead into the host, because the process keeps its old root until the pivot.
    openPath('open the old root', '/', 'old root'),
    attach('mount the new root over "/"', slot(ROOT), 'old root'),
    ...stagingOps(),
    ...input.places.flatMap((place, index) => placeOps(input, place, input.places.slice(0, index))),
    ...removeStagingOps(),
    ...readOnlyDevOps(input.places),
    setMountAttributes('make the new root read-only', ROOT, MOUNT_ATTR_RDONLY, false),
    changeDirectory('enter the new root', ROOT),
    call('pivot to the new root', 'pivot_root', cstring('.'), cstring('.')),
    call('detach the old root', 'umount2', cstring('.'), MNT_DETACH),
  ]
}

const STAGING = '.puzzled'

/** Sources of masks: one empty file and one empty directory, which nobody may open. */
function stagingOps(): SpawnOp[] {
  return [
    makeDirectory('make a place for masks', ROOT, STAGING, 0o755),
    openBelow('open the place for masks', ROOT, STAGING, 'staging'),
    createFile('make the mask for files', 'staging', 'file', 0, 'mask file'),
    makeDirectory('make the mask for directories', 'staging', 'directory', 0),
    openBelow('open the mask for directories', 'staging', 'directory', 'mask directory'),
  ]
}

/** What is bound elsewhere lives on; the names must not be seen in the agent's root. */
const removeStagingOps = (): SpawnOp[] => [
  call('remove the mask for files', 'unlinkat', slot('staging'), cstring('file'), 0),
  call('remove the mask for directories', 'unlinkat', slot('staging'), cstring('directory'), AT_REMOVEDIR),
  call('remove the place for masks', 'unlinkat', slot(ROOT), cstring(STAGING), AT_REMOVEDIR),
]

function newTmpfs(
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

/** Directories that are missing on the way to a mount point, in filesystems that this plan made. */
function directoryOps(input: RootPlanInput, place: Place, placed: readonly Place[]): SpawnOp[] {
  const cover = coverOf(place.path, placed)
  const own = cover?.kind === 'tmpfs' && cover.own
  const missing = missingDirectories(place, placed)
  const isNode = place.kind === 'link' || isFilePlace(place)
  return missing.flatMap((path) => {
    if (path === place.path && isNode) return place.kind === 'bind' ? [mountPointFile(path)] : []
    const made = makeDirectory(`make directory ${quoted(path)}`, ROOT, relative(path), 0o755)
    return own && path !== place.path ? [made, giveToAgent(input, path)] : [made]
  })
}

const mountPointFile = (path: string): SpawnOp =>
  createFile(`make the mount point ${quoted(path)}`, ROOT, relative(path), 0o444, `node ${path}`)

const giveToAgent = (input: RootPlanInput, path: string): SpawnOp =>
  call(
    `give ${quoted(path)} to the agent`,
    'fchownat',
    slot(ROOT),
    cstring(relative(path)),
    input.agent.uid,
    input.agent.gid,
    0,
  )

function placeOps(input: RootPlanInput, place: Place, placed: readonly Place[]): SpawnOp[] {
  const target = `target ${place.path}`
  const mount = `mount ${place.path}`
  const shown = quoted(place.path)
  const directories = directoryOps(input, place, placed)
  const onto = [openBelow(`open the mount point ${shown}`, ROOT, place.path, target)]
  switch (place.kind) {
    case 'link':
      return [
        ...directories,
        makeLink(`link ${shown} to ${quoted(place.target)}`, ROOT, relative(place.path), place.target),
      ]
    case 'bind':
      return [
        ...directories,
        ...onto,
        ...(place.asRequester
          ? []
          : [openPath(`open ${quoted(place.source)}`, place.source, sourceSlot(place.path))]),
        cloneMount(`clone ${quoted(place.source)}`, sourceSlot(place.path), mount, true),
        setMountAttributes(
          `make ${shown} read-only, nosuid, nodev`,
          mount,
          MOUNT_ATTR_RDONLY | SHIELDED,
          true,
        ),
        attach(`bind ${shown}`, slot(mount), target),
      ]
    case 'tmpfs': {
      const { size, mode } = place
      const options = place.own ? { mode, size, ...input.agent } : { mode, size }
      const made = newTmpfs(shown, mount, options, SHIELDED)
      return [...directories, ...onto, ...made, attach(`mount tmpfs on ${shown}`, slot(mount), target)]
    }
    case 'overlay':
      return [
        ...directories,
        ...onto,
        ...overlayOps(input, place.layers, mount),
        attach(`mount overlay on ${shown}`, slot(mount), target),
      ]
    case 'proc':
      return [...directories, ...onto, ...procOps(mount, target)]
    case 'dev':
      return [...directories, ...onto, ...devOps(input, mount, target)]
    case 'mask':
      return [
        ...directories,
        ...onto,
        cloneMount(
          `clone the mask for ${shown}`,
          place.of === 'file' ? 'mask file' : 'mask directory',
          mount,
          false,
        ),
        setMountAttributes(
          `make the mask of ${shown} read-only`,
          mount,
          MOUNT_ATTR_RDONLY | SHIELDED | MOUNT_ATTR_NOEXEC,
          false,
        ),
        attach(`mask ${shown}`, slot(mount), target),
      ]
    case 'read-only':
      return [
        ...onto,
        cloneMount(`clone ${shown}`, target, mount, true),
        setMountAttributes(`make ${shown} read-only`, mount, MOUNT_ATTR_RDONLY, true),
        attach(`bind ${shown}`, slot(mount), target),
      ]
    case 'file':
      return [...directories, ...fileOps(place, placed, mount, target)]
  }
}

/** Since Linux 6.8 lower layers are given one by one; before, in one string that is resolved when the mount is made. */
const takesLayersOneByOne = ([major, minor]: readonly [number, number]): boolean =>
  major > 6 || (major === 6 && minor >= 8)

/**
 * The overlay over one base. Every layer is named relative to the working directory, which is an open descriptor: the
 * base cannot be swapped for another one, and mountinfo shows no path of the store to the agent.
 */
function overlayOps(input: RootPlanInput, layers: OverlayLayers, mount: string): SpawnOp[] {
  const shown = quoted(layers.base)
  const context = `context of ${mount}`
  const oneByOne = takesLayersOneByOne(input.kernel)
  const [storeLowers, upperDir] = [layers.lowers.slice(0, -1), parentOf(layers.upper)]
  const enter = (what: string, path: string | null, from: string): SpawnOp[] => [
    ...(path === null ? [] : [openPath(`open ${what} of ${shown}`, path, from)]),
    ...mappedOps(input, `${what} of ${shown}`, from),
    changeDirectory(`enter ${what} of ${shown}`, input.ownerMap === null ? from : `mapped ${from}`),
  ]
  const set = (key: string, value: string): SpawnOp =>
    configure(`set ${key} of the overlay on ${shown}`, context, key, value)
  const lowers = oneByOne
    ? [
        ...storeLowers.flatMap((path, index) => [
          ...enter(`layer ${index}`, path, `${mount} layer ${index}`),
          set('lowerdir+', '.'),
        ]),
        ...enter('the base', null, sourceSlot(layers.base)),
        set('lowerdir+', '.'),
      ]
    : [
        ...enter('the base', null, sourceSlot(layers.base)),
        set('lowerdir', [...storeLowers.map(escapeLower), '.'].join(':')),
      ]
  const upper = oneByOne
    ? [
        ...enter('the writable layer', upperDir, `${mount} upper`),
        set('upperdir', nameOf(layers.upper)),
        set('workdir', nameOf(layers.work)),
      ]
    : [set('upperdir', layers.upper), set('workdir', layers.work)]
  return [
    openFilesystem(`open an overlay for ${shown}`, 'overlay', context),
    ...Object.entries(OVERLAY_OPTIONS).map(([key, value]) => set(key, value)),
    ...lowers,
    ...upper,
    createFilesystem(`create the overlay on ${shown}`, context),
    mountFilesystem(`mount the overlay for ${shown}`, context, SHIELDED, mount),
  ]
}

/** Nothing that would let the content of a layer point outside of it. */
export const OVERLAY_OPTIONS = {
  metacopy: 'off',
  redirect_dir: 'nofollow',
  index: 'off',
  xino: 'auto',
} as const

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const escapeLower = (path: string): string => path.replace(/[\\:]/g, '\\$&')

function mappedOps(input: RootPlanInput, what: string, from: string): SpawnOp[] {
  if (input.ownerMap === null) return []
  const mapped = `mapped ${from}`
  return [
    cloneMount(`clone ${what}`, from, mapped, false),
    mapOwners(`map the owners of ${what}`, mapped, input.ownerMap),
  ]
}

function procOps(mount: string, target: string): SpawnOp[] {
  const attributes = SHIELDED | MOUNT_ATTR_NOEXEC
  return [
    openFilesystem('open a new proc', 'proc', 'context of proc'),
    createFilesystem('create the new proc', 'context of proc'),
    mountFilesystem('mount the new proc', 'context of proc', attributes, mount),
    attach('mount proc on "/proc"', slot(mount), target),
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
function devOps(input: RootPlanInput, mount: string, target: string): SpawnOp[] {
  return [
    ...newTmpfs('"/dev"', mount, { mode: 0o755, size: '64k' }, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
    ...DEVICES.map(([name, major, minor]) => makeCharDevice(mount, name, major, minor)),
    ...DEV_LINKS.map(([name, to]) => makeLink(`link "/dev/${name}" to "${to}"`, mount, name, to)),
    makeDirectory('make directory "/dev/pts"', mount, 'pts', 0o755),
    attach('mount tmpfs on "/dev"', slot(mount), target),
    openBelow('open the mount point "/dev/pts"', ROOT, '/dev/pts', 'target /dev/pts'),
    attach('mount the terminals on "/dev/pts"', input.terminals, 'target /dev/pts'),
  ]
}

/** After its mount points exist, /dev takes no more names; what is mounted in it stays writable. */
const readOnlyDevOps = (places: readonly Place[]): SpawnOp[] =>
  places.some((place) => place.kind === 'dev')
    ? [setMountAttributes('make "/dev" read-only', 'mount /dev', MOUNT_ATTR_RDONLY, false)]
    : []

type FilePlace = Extract<Place, { kind: 'file' }>

/** Content that replaces a file of the host: written to the new root's tmpfs, bound over it, its own name removed. */
function fileOps(place: FilePlace, placed: readonly Place[], mount: string, target: string): SpawnOp[] {
  const shown = quoted(place.path)
  const made = `content of ${place.path}`
  const cover = coverOf(place.path, placed)
  const isOurs = cover === undefined || cover.kind === 'tmpfs'
  const created = isOurs
    ? [createFile(`make the file ${shown}`, ROOT, relative(place.path), 0o644, made)]
    : [createFile(`make the content of ${shown}`, 'staging', 'content', 0o644, made)]
  const written = call(`write the content of ${shown}`, 'write', slot(made), place.bytes, place.bytes.length)
  if (isOurs) return [...created, written]
  return [
    ...created,
    written,
    openBelow(`open the content of ${shown}`, 'staging', 'content', `source of ${place.path}`),
    openBelow(`open ${shown}`, ROOT, place.path, target),
    cloneMount(`clone the content of ${shown}`, `source of ${place.path}`, mount, false),
    setMountAttributes(
      `make ${shown} read-only`,
      mount,
      MOUNT_ATTR_RDONLY | SHIELDED | MOUNT_ATTR_NOEXEC,
      false,
    ),
    attach(`bind ${shown}`, slot(mount), target),
    call(`remove the name of the content of ${shown}`, 'unlinkat', slot('staging'), cstring('content'), 0),
  ]
}
