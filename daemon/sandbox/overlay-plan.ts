// pure
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import { MNT_DETACH } from '../kernel/uapi/index.ts'
import {
  attach,
  call,
  changeDirectory,
  cloneMount,
  configure,
  createFilesystem,
  cstring,
  mapOwners,
  mountFilesystem,
  openFilesystem,
  openPath,
  slot,
} from './calls.ts'
import type { OverlayLayers } from './places.ts'
import { MASK_DIRECTORY, mountSlot, quoted, SHIELDED, sourceSlot } from './root-slots.ts'

export interface OverlayInput {
  readonly kernel: readonly [number, number]
  /** Shifts the owner of the base onto the agent's uid while it looks at it; null when the agent is the owner. */
  readonly ownerMap: SpawnArg
}

/** Since Linux 6.8 lower layers are given one by one; before, in one string that is resolved when the mount is made. */
const takesLayersOneByOne = ([major, minor]: readonly [number, number]): boolean =>
  major > 6 || (major === 6 && minor >= 8)

/** Since Linux 6.15 a layer may lie on a mount that is attached nowhere; before, on one of this namespace only. */
const takesDetachedLayers = ([major, minor]: readonly [number, number]): boolean =>
  major > 6 || (major === 6 && minor >= 15)

/**
 * The overlay over one base. Every layer is named relative to the working directory, which is an open descriptor: the
 * base cannot be swapped for another one, and mountinfo shows no path of the store to the agent.
 */
export function overlayOps(input: OverlayInput, layers: OverlayLayers): SpawnOp[] {
  const mount = mountSlot(layers.base)
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
  const isParked = input.ownerMap !== null && !takesDetachedLayers(input.kernel)
  const parked = oneByOne
    ? [...storeLowers.map((_, index) => `${mount} layer ${index}`), sourceSlot(layers.base), `${mount} upper`]
    : [sourceSlot(layers.base)]
  return [
    openFilesystem(`open an overlay for ${shown}`, 'overlay', context),
    ...Object.entries(OVERLAY_OPTIONS).map(([key, value]) => set(key, value)),
    ...lowers,
    ...upper,
    createFilesystem(`create the overlay on ${shown}`, context),
    ...(isParked ? unparkOps(parked) : []),
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

function mappedOps(input: OverlayInput, what: string, from: string): SpawnOp[] {
  if (input.ownerMap === null) return []
  const mapped = `mapped ${from}`
  return [
    cloneMount(`clone ${what}`, from, mapped, false),
    mapOwners(`map the owners of ${what}`, mapped, input.ownerMap),
    ...(takesDetachedLayers(input.kernel)
      ? []
      : [attach(`park ${what} where an overlay may take it from`, slot(mapped), MASK_DIRECTORY)]),
  ]
}

/**
 * The overlay holds its own clones of its layers from the moment that it is made. Parked mounts lie on one another, and a
 * path that leads to the lowest ends on the topmost: unmounting "." once for each takes them all.
 */
const unparkOps = (parked: readonly string[]): SpawnOp[] => [
  changeDirectory('enter the lowest parked layer', `mapped ${parked[0]}`),
  ...parked.map((from) => call(`unpark the topmost, for ${from}`, 'umount2', cstring('.'), MNT_DETACH)),
]
