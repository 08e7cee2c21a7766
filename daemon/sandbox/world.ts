import { statSync } from 'node:fs'
import type { BranchRecord, Grant } from '../contract/branch.ts'
import type { Profile } from '../contract/profile.ts'
import { landlockAbi } from '../kernel/landlock.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type Account, accountOf, idsOf, passwdWith } from './account.ts'
import { agentEnvironment } from './environment.ts'
import { gatherFacts } from './facts.ts'
import { agentHome, NO_HOME } from './home.ts'
import { agentIdentity, type Identity } from './identity.ts'
import type { OverlayLayers, Place } from './places.ts'
import { type HostFacts, LOADERS } from './root-facts.ts'
import { rootPlaces } from './root-places.ts'
import { execNotifyFilter, seccompFilters } from './seccomp.ts'
import type { SeccompFilter } from './seccomp-plan.ts'
import type { Architecture } from './seccomp-rules.ts'

/** A network namespace that is ready, with the daemon's listeners inside. */
export interface BranchNetwork {
  readonly namespace: number
  readonly environment: Readonly<Record<string, string>>
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[]
}

/** What of a branch's record its processes depend on. */
export type WorldRecord = Pick<BranchRecord, 'id' | 'requester' | 'bases'>

/** Everything about a branch that each of its processes is planned from. Found once, when the agent starts. */
export interface World {
  readonly record: WorldRecord
  readonly profile: Profile
  readonly identity: Identity
  readonly home: string
  readonly user: string
  readonly facts: HostFacts
  readonly places: readonly Place[]
  readonly landlockAbi: number
  readonly seccomp: readonly SeccompFilter[]
  readonly network: BranchNetwork | null
}

/** A user of its own for root's agents, made by sysusers; any high number serves where it is missing. */
const UNPRIVILEGED_USER = 'puzzled-agent'
const UNPRIVILEGED = { uid: 64_321, gid: 64_321 }
const NO_ACCOUNT: Account = { name: 'agent', home: NO_HOME, shell: '/bin/sh' }

export function worldOf(
  record: WorldRecord,
  profile: Profile,
  layers: readonly OverlayLayers[],
  network: BranchNetwork | null,
  identity = identityOf(record),
): World {
  const home = agentHome((accountOf(record.requester.uid) ?? NO_ACCOUNT).home)
  const passwd = passwdWith(identity.uid, identity.gid, home)
  const files = [
    ...(network?.files ?? []),
    ...(passwd === null ? [] : [{ path: '/etc/passwd', bytes: passwd }]),
  ]
  const nestedReadOnly = record.bases.flatMap((base) =>
    base.nested.filter((nested) => nested.handling === 'read-only').map((nested) => nested.path),
  )
  const facts = gatherFacts([...namedPaths(profile, files), ...nestedReadOnly])
  return {
    record,
    profile,
    identity,
    home,
    user: (accountOf(identity.uid) ?? NO_ACCOUNT).name,
    facts,
    places: rootPlaces({ profile, layers, nestedReadOnly, facts, home, files }),
    landlockAbi: landlockAbi(),
    seccomp: seccompFilters({
      program: profile.seccomp,
      architecture: process.arch as Architecture,
      sealMemfds: profile.exec.allow !== 'any',
    }),
    network,
  }
}

const NO_BYTES = new Uint8Array()

/** What commands that join are planned from. The contents of files are in the agent's root by then. */
export const worldInside = (world: World): World => ({
  ...world,
  network:
    world.network === null
      ? null
      : { namespace: world.network.namespace, environment: world.network.environment, files: [] },
  places: world.places.map((place) => (place.kind === 'file' ? { ...place, bytes: NO_BYTES } : place)),
})

export const environmentOf = (
  world: World,
  granted: Readonly<Record<string, string>>,
  terminal: boolean,
): Record<string, string> =>
  agentEnvironment({
    granted,
    network: world.network?.environment ?? {},
    user: world.user,
    home: world.home,
    shell: '/bin/sh',
    terminal,
  })

const namedPaths = (profile: Profile, files: readonly { path: string }[]): string[] =>
  [
    ...profile.mounts,
    ...files,
    ...(profile.exec.allow === 'any' ? [] : profile.exec.allow),
    ...profile.exec.deny,
    ...profile.landlock.read,
    ...profile.landlock.write,
    ...LOADERS.map((path) => ({ path })),
  ].map((entry) => entry.path)

/** Who the agent is. Asked for before the rest: its terminal belongs to it. */
export function identityOf(record: WorldRecord): Identity {
  const base = record.bases[0]
  if (base === undefined) throw new PuzzledError('base-invalid', `Branch ${record.id} has no base`)
  const { uid, gid } = statSync(base.path)
  return agentIdentity(record.requester, { uid, gid }, idsOf(UNPRIVILEGED_USER) ?? UNPRIVILEGED)
}

export const worldGrants = (world: World): Grant[] => {
  const { record, profile, identity, network } = world
  return [
    {
      what: 'identity',
      requested: `uid ${record.requester.uid}`,
      granted:
        identity.shift === null
          ? `uid ${identity.uid}`
          : `uid ${identity.uid}, to which files of uid ${identity.shift.uid} look like its own`,
      full: true,
    },
    {
      what: 'network',
      requested: profile.network.mode,
      granted: network === null ? 'none' : profile.network.mode,
      full: network !== null || profile.network.mode === 'none',
    },
  ]
}

/** The filter that asks before each program, for a start that has a socket for its listener. */
export const execNotifyOf = (socket: number | null) =>
  socket === null ? null : { filter: execNotifyFilter(process.arch as Architecture), socket }
