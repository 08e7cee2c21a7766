// pure
import type { Profile } from '../contract/profile.ts'
import type { LandlockPath } from './landlock-rules.ts'
import { coverOf, isFilePlace, type Place } from './places.ts'
import { type HostFacts, LOADERS } from './root-facts.ts'

/**
 * What Landlock allows on each place of the new root: the second lock on what the mounts already say. A path that is
 * not named gets nothing, so that a mount that should not be there cannot be used.
 */
export function landlockPlaces(
  places: readonly Place[],
  profile: Pick<Profile, 'exec' | 'landlock'>,
  facts: Pick<HostFacts, 'paths'>,
): LandlockPath[] {
  const runs = profile.exec.allow === 'any'
  const own = places.flatMap((place): LandlockPath[] => {
    const kind = isFilePlace(place) ? 'file' : 'directory'
    switch (place.kind) {
      case 'bind':
        return [{ path: place.path, kind, access: runs && place.path !== '/etc' ? 'execute' : 'read' }]
      case 'tmpfs':
      case 'overlay':
        return [{ path: place.path, kind, access: 'write' }]
      case 'dev':
      case 'proc':
        return [{ path: place.path, kind, access: 'device' }]
      default:
        return []
    }
  })
  return [
    { path: '/', kind: 'directory', access: 'list' },
    ...own,
    ...granted(places, facts, executables(profile), 'execute'),
    ...granted(places, facts, profile.landlock.read, 'read'),
    ...granted(places, facts, profile.landlock.write, 'write'),
  ]
}

const executables = (profile: Pick<Profile, 'exec'>): readonly { readonly path: string }[] =>
  profile.exec.allow === 'any' ? [] : [...profile.exec.allow, ...LOADERS.map((path) => ({ path }))]

/** A grant counts where it is seen at all: what no place covers is not in the agent's root. */
function granted(
  places: readonly Place[],
  facts: Pick<HostFacts, 'paths'>,
  grants: readonly { readonly path: string }[],
  access: LandlockPath['access'],
): LandlockPath[] {
  return grants.flatMap((grant): LandlockPath[] => {
    const found = facts.paths[grant.path]
    if (found === undefined || (found.kind !== 'file' && found.kind !== 'directory')) return []
    const shown =
      places.some((place) => place.path === found.real) || coverOf(found.real, places) !== undefined
    return shown ? [{ path: found.real, kind: found.kind, access }] : []
  })
}
