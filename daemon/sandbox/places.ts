// pure
import { PuzzledError } from '../lib/errors.ts'

/** A layered view of a base. Same shape as the branch feature's layer mounts. */
export interface OverlayLayers {
  readonly base: string
  /** Topmost first; the base itself is last. */
  readonly lowers: readonly string[]
  readonly upper: string
  readonly work: string
}

/** What the agent finds at one path of its root. */
export type Place =
  | {
      readonly kind: 'bind'
      readonly path: string
      readonly source: string
      readonly of: 'file' | 'directory'
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | {
      readonly kind: 'tmpfs'
      readonly path: string
      readonly size: string
      readonly mode: number
      readonly own: boolean
    }
  | { readonly kind: 'overlay'; readonly path: string; readonly layers: OverlayLayers }
  | { readonly kind: 'proc'; readonly path: '/proc' }
  | { readonly kind: 'dev'; readonly path: '/dev' }
  | { readonly kind: 'mask'; readonly path: string; readonly of: 'file' | 'directory' }
  | { readonly kind: 'read-only'; readonly path: string }
  | { readonly kind: 'file'; readonly path: string; readonly bytes: Uint8Array }

/**
 * The places in the order in which they are mounted: whatever lies below another place comes after it. Of two that name
 * the same path the later one of the list stands, so that a base replaces a system directory and a mask everything.
 */
export function inMountOrder(places: readonly Place[]): Place[] {
  const byPath = new Map<string, Place>()
  for (const place of places) byPath.set(place.path, place)
  return [...byPath.values()]
    .map((place) => ({ place, key: orderKey(place.path) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ place }) => place)
}

/** Parents before children, then by name: `/a`, `/a/b`, `/a-b`. No name contains a NUL. */
const orderKey = (path: string): string => path.replaceAll('/', '\0')

export const components = (path: string): string[] => path.split('/').filter((name) => name !== '')

const SLASH = 0x2f

/** Asked for each pair of places, so it makes no string. */
export const isBelow = (path: string, above: string): boolean =>
  path.length > above.length &&
  (above === '/' ? path.charCodeAt(0) : path.charCodeAt(above.length)) === SLASH &&
  path.startsWith(above)

/** What the mount point has to be. */
export const isFilePlace = (place: Place): boolean =>
  place.kind === 'file' || ((place.kind === 'mask' || place.kind === 'bind') && place.of === 'file')

/** Filesystems that the plan itself fills: a missing mount point is made there, and nowhere else. */
const isOurs = (place: Place): boolean => place.kind === 'tmpfs' || place.kind === 'dev'

/**
 * The directories that must be made in the agent's own tmpfs for this place's mount point, shallowest first. Empty when
 * the mount point lies in a bind or an overlay: it exists there because it exists on the host, and nothing is ever made
 * in a base to mount on.
 */
export function missingDirectories(place: Place, placed: readonly Place[]): string[] {
  const cover = coverOf(place.path, placed)
  if (cover !== undefined && !isOurs(cover)) return []
  const depth = components(cover?.path ?? '/').length
  const names = components(place.path)
  return names
    .slice(depth)
    .map((_, index) => `/${names.slice(0, depth + index + 1).join('/')}`)
    .filter((path) => !placed.some((other) => other.path === path || isBelow(other.path, path)))
}

/** The deepest place above a path, among those already mounted. */
export const coverOf = (path: string, placed: readonly Place[]): Place | undefined =>
  placed
    .filter((place) => place.kind !== 'link' && isBelow(path, place.path))
    .reduce<Place | undefined>(
      (best, place) => (best === undefined || place.path.length > best.path.length ? place : best),
      undefined,
    )

/** Paths in a plan are absolute, without `.`/`..`/doubled slashes, and never inside the filesystems that we make. */
export function checkPlacePath(path: string, what: string): string {
  const clean = `/${components(path).join('/')}`
  const odd = components(path).some((name) => name === '.' || name === '..')
  if (path !== clean || odd || path.includes('\0'))
    throw new PuzzledError('base-invalid', `${what} ${JSON.stringify(path)} is not a canonical absolute path`)
  for (const reserved of ['/proc', '/dev', '/sys'])
    if (path === reserved || isBelow(path, reserved))
      throw new PuzzledError('base-invalid', `${what} ${JSON.stringify(path)} lies in ${reserved}`)
  if (path === '/') throw new PuzzledError('base-invalid', `${what} is the whole root`)
  return path
}
