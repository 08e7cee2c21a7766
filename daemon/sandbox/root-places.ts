// pure
import type { Profile } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'
import { checkPlacePath, coverOf, inMountOrder, isBelow, type OverlayLayers, type Place } from './places.ts'
import type { HostFacts } from './root-facts.ts'

export interface RootInput {
  readonly profile: Pick<Profile, 'name' | 'mounts' | 'home' | 'exec'>
  readonly layers: readonly OverlayLayers[]
  /** Mounts below a base that are shown read-only. */
  readonly nestedReadOnly: readonly string[]
  readonly facts: HostFacts
  /** The home directory that the agent believes in. */
  readonly home: string
  /** Files whose content differs from the host's: resolver, certificates. */
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[]
}

/** Sizes of the private filesystems. They are memory, so they count against the agent's cgroup as well. */
export const SIZES = {
  '/tmp': '1g',
  '/var/tmp': '512m',
  '/run': '64m',
  '/dev/shm': '512m',
  home: '1g',
} as const

/** Everything that the agent's root consists of, in mount order. Throws for a profile or base that makes no sense. */
export function rootPlaces(input: RootInput): Place[] {
  const places: Place[] = [
    tmpfs('/tmp', SIZES['/tmp'], 0o1777),
    tmpfs('/var/tmp', SIZES['/var/tmp'], 0o1777),
    tmpfs('/run', SIZES['/run'], 0o755),
    { kind: 'link', path: '/var/run', target: '/run' },
    { kind: 'dev', path: '/dev' },
    tmpfs('/dev/shm', SIZES['/dev/shm'], 0o1777),
    ...homePlace(input),
    ...input.profile.mounts.flatMap((grant) => profilePlace(input, grant)),
    ...input.nestedReadOnly.flatMap((path) => nestedPlace(input, path)),
    ...input.layers.map(overlayPlace),
  ]
  places.push(
    ...input.facts.secrets.filter((secret) => isShown(secret.path, places)).map(maskOf),
    ...input.facts.kernelMounts.filter(({ path }) => coverOf(path, places)?.kind === 'bind').map(maskOf),
    ...input.profile.mounts.flatMap((grant) => hiddenPlace(input, grant, places)),
    ...deniedPlaces(input, places),
    ...input.files.flatMap((file) => filePlace(input, file)),
    { kind: 'proc', path: '/proc' },
    ...input.facts.procReadOnly.map((path): Place => ({ kind: 'read-only', path })),
    ...input.facts.procMasks.map(maskOf),
  )
  return inMountOrder(places)
}

const bind = (path: string, source: string, of: 'file' | 'directory' = 'directory'): Place => ({
  kind: 'bind',
  path,
  source,
  of,
})

const tmpfs = (path: string, size: string, mode: number, own = false): Place => ({
  kind: 'tmpfs',
  path,
  size,
  mode,
  own,
})

const overlayPlace = (layers: OverlayLayers): Place => ({
  kind: 'overlay',
  path: checkPlacePath(layers.base, 'Base'),
  layers,
})

/** A socket that somebody mounted below a base stays away: being read-only keeps nobody from connecting to it. */
function nestedPlace(input: RootInput, path: string): Place[] {
  const kind = input.facts.paths[path]?.kind ?? 'directory'
  if (kind === 'other') return []
  return [bind(checkPlacePath(path, 'Nested mount'), path, kind === 'file' ? 'file' : 'directory')]
}

/** A home that a base shows already, or that lies in a system directory, is left alone. */
function homePlace(input: RootInput): Place[] {
  const covered = input.layers.some(
    (layers) => layers.base === input.home || isBelow(input.home, layers.base),
  )
  if (covered || input.profile.home === 'hidden') return []
  if (input.profile.home === 'overlay')
    throw new PuzzledError(
      'profile-invalid',
      `Profile "${input.profile.name}" shows the home directory as an overlay, but "${input.home}" has no layers`,
      { hint: `Add "${input.home}" to the bases, or use home: private` },
    )
  return [tmpfs(checkPlacePath(input.home, 'Home'), SIZES.home, 0o700, true)]
}

type Grant = Profile['mounts'][number]

function profilePlace(input: RootInput, grant: Grant): Place[] {
  if (grant.mode === 'hidden') return []
  const path = checkPlacePath(grant.path, `Mount of profile "${input.profile.name}"`)
  const found = input.facts.paths[path]
  if (found === undefined || found.kind === 'absent') {
    if (grant.optional) return []
    throw new PuzzledError(
      'profile-invalid',
      `Profile "${input.profile.name}" mounts "${path}", which does not exist`,
      { hint: 'Create it, or mark the mount `optional: true`', data: { path, why: grant.why } },
    )
  }
  refuseKernelMount(input, path, found.real)
  if (grant.mode === 'ro') {
    const link = input.facts.links[path]
    if (link !== undefined) return [{ kind: 'link', path, target: link }]
    return [bind(path, found.real, found.kind === 'directory' ? 'directory' : 'file')]
  }
  // A base is mounted as one; the fork has made each of these places a base, or part of one.
  if (input.layers.some(({ base }) => [path, found.real].some((at) => at === base || isBelow(at, base))))
    return []
  throw new PuzzledError(
    'profile-invalid',
    `Profile "${input.profile.name}" makes "${path}" writable, but it has no layers`,
    { hint: `Add "${path}" to the bases` },
  )
}

/** The host's processes and namespaces are shown by no profile, whatever name or link leads to them. */
function refuseKernelMount({ profile, facts }: RootInput, path: string, real: string): void {
  const mount = facts.kernelMounts.find((known) => known.path === real || isBelow(real, known.path))
  if (mount === undefined) return
  throw new PuzzledError(
    'profile-invalid',
    `Profile "${profile.name}" mounts "${path}", which is the kernel's own filesystem at "${mount.path}"`,
    { hint: 'An agent has a /proc of its own; take the mount out of the profile.', data: { path } },
  )
}

const maskOf = (secret: { path: string; kind: 'file' | 'directory' }): Place => ({
  kind: 'mask',
  path: secret.path,
  of: secret.kind,
})

/** Whether something of the host's would be seen here. */
function isShown(path: string, places: readonly Place[]): boolean {
  const cover = coverOf(path, places)
  return cover?.kind === 'bind' || cover?.kind === 'overlay' || places.some((place) => place.path === path)
}

/** Hides what would otherwise be seen; a path that nothing shows is hidden already. */
function hiddenPlace(input: RootInput, grant: Grant, places: readonly Place[]): Place[] {
  if (grant.mode !== 'hidden') return []
  const path = checkPlacePath(grant.path, `Mount of profile "${input.profile.name}"`)
  const kind = input.facts.paths[path]?.kind ?? 'absent'
  return isShown(path, places) && kind !== 'absent'
    ? [{ kind: 'mask', path, of: kind === 'directory' ? 'directory' : 'file' }]
    : []
}

/**
 * A program that the profile denies is masked where it really is, whatever names lead to it: it can neither be executed
 * nor read, so that no copy, loader or interpreter runs it either.
 */
function deniedPlaces(input: RootInput, places: readonly Place[]): Place[] {
  const found = input.profile.exec.deny.flatMap((grant) => {
    const fact = input.facts.paths[checkPlacePath(grant.path, `Program denied by "${input.profile.name}"`)]
    return fact === undefined || fact.kind === 'absent' ? [] : [fact]
  })
  const real = new Map(found.map((fact) => [fact.real, fact.kind]))
  return [...real]
    .filter(([path]) => coverOf(path, places) !== undefined || places.some((place) => place.path === path))
    .map(([path, kind]): Place => ({ kind: 'mask', path, of: kind === 'directory' ? 'directory' : 'file' }))
}

/** A file override stands where the host's file really is, since `/etc/resolv.conf` is often a link into `/run`. */
function filePlace(input: RootInput, file: RootInput['files'][number]): Place[] {
  const found = input.facts.paths[file.path]
  if (found === undefined || found.kind !== 'file') return []
  return [{ kind: 'file', path: found.real, bytes: file.bytes }]
}
