// pure
import { posix } from 'node:path'
import { DENIALS_PATH } from '../contract/denial.ts'
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import {
  AT_REMOVEDIR,
  MNT_DETACH,
  MOUNT_ATTR_NOEXEC,
  MOUNT_ATTR_RDONLY,
  MS_PRIVATE,
  MS_REC,
} from '../kernel/uapi/index.ts'
import {
  attach,
  call,
  changeDirectory,
  cloneMount,
  close,
  createFile,
  cstring,
  makeDirectory,
  makeLink,
  openBelow,
  openPath,
  setMountAttributes,
  slot,
} from './calls.ts'
import { KeptOps, keep } from './kept-ops.ts'
import { type OverlayInput, overlayOps } from './overlay-plan.ts'
import { devOps, fileOps, newTmpfs, procOps, terminalOps } from './own-filesystems.ts'
import { coverOf, isFilePlace, missingDirectories, type Place } from './places.ts'
import {
  MASK_DIRECTORY,
  mountSlot,
  quoted,
  ROOT,
  relative,
  SHIELDED,
  STAGING,
  sourceSlot,
  targetSlot,
} from './root-slots.ts'

export interface RootPlanInput extends OverlayInput {
  /** From `rootPlaces`. */
  readonly places: readonly Place[]
  readonly agent: { readonly uid: number; readonly gid: number }
  /** A devpts instance of the agent's own, mounted nowhere yet. */
  readonly terminals: SpawnArg
  /** A read-only mount of the list of denials, mounted nowhere yet; null where nobody writes one. */
  readonly denials: SpawnArg
}

/**
 * Opens what the agent will see of the requester's files. Runs with the requester's file rights (see `identity.ts`):
 * a place that the requester cannot reach must not become visible because root mounted it.
 */
export const sourceOps = (places: readonly Place[]): readonly SpawnOp[] =>
  keptSources.of(places.map(sourceKey).join('\0\0'), () => keep(openOps(places)))

const keptSources = new KeptOps<Ops>()

const sourceKey = (place: Place): string =>
  place.kind === 'overlay' ? `${place.path}\0${place.layers.base}` : placeKey(place)

const openOps = (places: readonly Place[]): SpawnOp[] =>
  places.flatMap((place) =>
    place.kind === 'overlay'
      ? [openPath(`open the base ${quoted(place.path)}`, place.layers.base, sourceSlot(place.path))]
      : place.kind === 'bind'
        ? [
            openPath(
              `open ${quoted(place.source)} for ${quoted(place.path)}`,
              place.source,
              sourceSlot(place.path),
            ),
          ]
        : [],
  )

/** Builds the agent's root beside the host's, leaves the host's behind, and makes the new one read-only. */
export function rootOps(input: RootPlanInput): SpawnOp[] {
  const { begin, places, middle, end } = kept.of(keyOf(input), () => keptParts(input))
  return [
    ...begin,
    ...input.places.flatMap((place, index) => [
      ...(places[index] ?? placeOps(input, place, input.places.slice(0, index))),
      ...(place.kind === 'dev' ? terminalOps(input.terminals) : []),
    ]),
    ...middle,
    ...denialsOps(input.denials),
    ...end,
  ]
}

type Ops = readonly SpawnOp[]

/** Everything but layers, contents and descriptors; null stands where one of these comes between. */
interface KeptParts {
  readonly begin: Ops
  readonly places: readonly (Ops | null)[]
  readonly middle: Ops
  readonly end: Ops
}

const kept = new KeptOps<KeptParts>()

/** All of a place but its layers and contents, which are planned anew; no path has a NUL in it. */
const keyOf = ({ places, agent }: RootPlanInput): string => {
  let key = `${agent.uid} ${agent.gid}`
  for (const place of places) key += `\0\0${placeKey(place)}`
  return key
}

function placeKey(place: Place): string {
  const { kind, path } = place
  switch (kind) {
    case 'bind':
      return `${kind}\0${path}\0${place.source}\0${place.of}`
    case 'link':
      return `${kind}\0${path}\0${place.target}`
    case 'tmpfs':
      return `${kind}\0${path}\0${place.size}\0${place.mode}\0${place.own}`
    case 'mask':
      return `${kind}\0${path}\0${place.of}`
    default:
      return `${kind}\0${path}`
  }
}

function keptParts(input: RootPlanInput): KeptParts {
  return {
    begin: keep([
      call('make mount propagation private', 'mount', null, cstring('/'), null, MS_REC | MS_PRIVATE, null),
      ...newTmpfs('the new root', ROOT, { mode: 0o755, size: '16m' }, SHIELDED),
      // Over "/": absolute paths still lead into the host, because the process keeps its old root until the pivot.
      openPath('open the old root', '/', 'old root'),
      attach('mount the new root over "/"', slot(ROOT), 'old root'),
      ...stagingOps(),
    ]),
    places: input.places.map((place, index) =>
      place.kind === 'overlay' || place.kind === 'file'
        ? null
        : keep(placeOps(input, place, input.places.slice(0, index))),
    ),
    middle: keep(removeStagingOps()),
    end: keep([
      ...readOnlyDevOps(input.places),
      setMountAttributes('make the new root read-only', ROOT, MOUNT_ATTR_RDONLY, false),
      changeDirectory('enter the new root', ROOT),
      call('pivot to the new root', 'pivot_root', cstring('.'), cstring('.')),
      call('detach the old root', 'umount2', cstring('.'), MNT_DETACH),
    ]),
  }
}

const STAGING_NAME = '.puzzled'

/** Sources of masks: one empty file and one empty directory, which nobody may open. */
function stagingOps(): SpawnOp[] {
  return [
    makeDirectory('make a place for masks', ROOT, STAGING_NAME, 0o755),
    openBelow('open the place for masks', ROOT, STAGING_NAME, STAGING),
    createFile('make the mask for files', STAGING, 'file', 0, 'made mask'),
    close('the mask for files', 'made mask'),
    openBelow('open the mask for files', STAGING, 'file', 'mask file'),
    makeDirectory('make the mask for directories', STAGING, 'directory', 0),
    openBelow('open the mask for directories', STAGING, 'directory', MASK_DIRECTORY),
  ]
}

/** What is bound elsewhere lives on; the names must not be seen in the agent's root. */
const removeStagingOps = (): SpawnOp[] => [
  call('remove the mask for files', 'unlinkat', slot(STAGING), cstring('file'), 0),
  call('remove the mask for directories', 'unlinkat', slot(STAGING), cstring('directory'), AT_REMOVEDIR),
  call('remove the place for masks', 'unlinkat', slot(ROOT), cstring(STAGING_NAME), AT_REMOVEDIR),
]

/** Directories that are missing on the way to a mount point, in filesystems that this plan made. */
function directoryOps(input: RootPlanInput, place: Place, placed: readonly Place[]): SpawnOp[] {
  const cover = coverOf(place.path, placed)
  const own = cover?.kind === 'tmpfs' && cover.own
  const missing = missingDirectories(place, placed)
  const isNode = place.kind === 'link' || isFilePlace(place)
  return missing.flatMap((path) => {
    if (path === place.path && isNode) return place.kind === 'bind' ? mountPointFile(path) : []
    const made = makeDirectory(`make directory ${quoted(path)}`, ROOT, relative(path), 0o755)
    return own && path !== place.path ? [made, giveToAgent(input, path)] : [made]
  })
}

const mountPointFile = (path: string): SpawnOp[] => [
  createFile(`make the mount point ${quoted(path)}`, ROOT, relative(path), 0o444, `node ${path}`),
  close(`the mount point ${quoted(path)}`, `node ${path}`),
]

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

/** The calls that put one place into the new root, by kind. */
function placeOps(input: RootPlanInput, place: Place, placed: readonly Place[]): SpawnOp[] {
  const directories = directoryOps(input, place, placed)
  const shown = quoted(place.path)
  if (place.kind === 'link')
    return [
      ...directories,
      makeLink(`link ${shown} to ${quoted(place.target)}`, ROOT, relative(place.path), place.target),
    ]
  if (place.kind === 'file') return [...directories, ...fileOps(place, placed)]
  return [
    ...directories,
    openBelow(`open the mount point ${shown}`, ROOT, place.path, targetSlot(place.path)),
    ...mountedOps(input, place),
    attach(`mount ${describe(place)} on ${shown}`, slot(mountSlot(place.path)), targetSlot(place.path)),
  ]
}

type MountedPlace = Exclude<Place, { kind: 'link' | 'file' }>

const describe = (place: MountedPlace): string =>
  ({
    bind: 'the host’s, read-only,',
    tmpfs: 'tmpfs',
    overlay: 'overlay',
    proc: 'proc',
    dev: 'devices',
    mask: 'a mask',
    'read-only': 'a read-only view',
  })[place.kind]

/** Makes the mount of a place, attached nowhere yet. */
function mountedOps(input: RootPlanInput, place: MountedPlace): SpawnOp[] {
  const mount = mountSlot(place.path)
  const shown = quoted(place.path)
  switch (place.kind) {
    case 'bind':
      return bindOps(place)
    case 'tmpfs': {
      const { size, mode } = place
      const owner = { uid: input.agent.uid, gid: input.agent.gid }
      return newTmpfs(shown, mount, place.own ? { mode, size, ...owner } : { mode, size }, SHIELDED)
    }
    case 'overlay':
      return overlayOps(input, place.layers)
    case 'proc':
      return procOps(mount)
    case 'dev':
      return devOps(mount)
    case 'mask':
      return [
        cloneMount(`clone the mask for ${shown}`, `mask ${place.of}`, mount, false),
        setMountAttributes(
          `make the mask of ${shown} read-only`,
          mount,
          MOUNT_ATTR_RDONLY | SHIELDED | MOUNT_ATTR_NOEXEC,
          false,
        ),
      ]
    case 'read-only':
      return [
        cloneMount(`clone ${shown}`, targetSlot(place.path), mount, true),
        setMountAttributes(`make ${shown} read-only`, mount, MOUNT_ATTR_RDONLY, true),
      ]
  }
}

function bindOps(place: Extract<Place, { kind: 'bind' }>): SpawnOp[] {
  const [source, mount] = [sourceSlot(place.path), mountSlot(place.path)]
  return [
    cloneMount(`clone ${quoted(place.source)} for ${quoted(place.path)}`, source, mount, true),
    setMountAttributes(
      `make ${quoted(place.path)} read-only, nosuid, nodev`,
      mount,
      MOUNT_ATTR_RDONLY | SHIELDED,
      true,
    ),
  ]
}

/** In the tmpfs of /run, which belongs to root: the agent can neither replace the list nor make another one. */
function denialsOps(denials: SpawnArg): SpawnOp[] {
  if (denials === null) return []
  const target = targetSlot(DENIALS_PATH)
  return [
    makeDirectory('make a place for the list of denials', ROOT, relative(posix.dirname(DENIALS_PATH)), 0o755),
    ...mountPointFile(DENIALS_PATH),
    openBelow('open the mount point of the list of denials', ROOT, DENIALS_PATH, target),
    attach('mount the list of denials', denials, target),
  ]
}

/** After its mount points exist, /dev takes no more names; what is mounted in it stays writable. */
const readOnlyDevOps = (places: readonly Place[]): SpawnOp[] =>
  places.some((place) => place.kind === 'dev')
    ? [setMountAttributes('make "/dev" read-only', mountSlot('/dev'), MOUNT_ATTR_RDONLY, false)]
    : []
