// pure
import type { Profile } from '../contract/profile.ts'
import { agentIdentity } from './identity.ts'
import type { OverlayLayers } from './places.ts'
import type { HostFacts } from './root-facts.ts'
import { rootPlaces } from './root-places.ts'
import { type PlanInput, type SpawnPlan, spawnPlan } from './spawn-plan.ts'

/** A small host and a small profile, for tests of the planners. */
export const FACTS: HostFacts = {
  oomScore: 0,
  clocks: { monotonic: 5000, boottime: 6000 },
  kernel: [6, 18],
  lastCapability: 40,
  hardLimits: {},
  links: { '/bin': 'usr/bin' },
  kernelMounts: [
    { path: '/proc', kind: 'directory' },
    { path: '/sys', kind: 'directory' },
  ],
  secrets: [
    { path: '/etc/shadow', kind: 'file' },
    { path: '/etc/sudoers.d', kind: 'directory' },
  ],
  procMasks: [{ path: '/proc/kcore', kind: 'file' }],
  procReadOnly: ['/proc/sys'],
  paths: {
    '/usr': { kind: 'directory', real: '/usr' },
    '/bin': { kind: 'directory', real: '/usr/bin' },
    '/etc': { kind: 'directory', real: '/etc' },
  },
}

const system = (path: string) => ({ path, mode: 'ro', optional: true, why: 'The system.' }) as const

/** What every profile shows; missing names (`/lib32`) are skipped. */
export const SYSTEM_MOUNTS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/opt', '/etc'].map(system)

export const PROFILE: Profile = {
  name: 'test',
  description: 'A profile for tests of the planners.',
  enforce: 'enforce',
  mounts: SYSTEM_MOUNTS,
  home: 'private',
  environment: { pass: [], set: {} },
  exec: { allow: 'any', deny: [] },
  seccomp: 'standard',
  landlock: { read: [], write: [] },
  namespaces: { time: false },
  network: { mode: 'none', rules: [], expose: [], ports: [], replay: 'after-files', credentials: [] },
  budgets: { limits: {}, atLimit: 'freeze' },
  gate: {
    onAgentFailure: 'hold',
    allowSetuid: false,
    maxFiles: 100,
    maxBytes: 1024,
    maxDeletions: 10,
    policies: [],
    holdPaths: [],
    denyPaths: [],
  },
  require: [],
  prefer: [],
  resources: {},
  rlimits: { nofile: 1024 },
}

export const layersOf = (base: string): OverlayLayers => ({
  base,
  lowers: [base],
  upper: '/store/branches/x/layers/001/upper',
  work: '/store/branches/x/layers/001/work',
})

export interface FixtureChange {
  profile?: Partial<Profile>
  facts?: Partial<HostFacts>
  layers?: readonly OverlayLayers[]
  home?: string
  requester?: PlanInput['requester']
  baseOwner?: number
  input?: Partial<PlanInput>
  files?: readonly { path: string; bytes: Uint8Array }[]
}

const withSystem = (change: Partial<Profile> = {}): Profile => ({
  ...PROFILE,
  ...change,
  mounts: [...SYSTEM_MOUNTS, ...(change.mounts ?? [])],
})

const factsOf = (change: FixtureChange): HostFacts => ({
  ...FACTS,
  ...change.facts,
  paths: { ...FACTS.paths, ...change.facts?.paths },
})

export const placesOf = (change: FixtureChange = {}) =>
  rootPlaces({
    profile: withSystem(change.profile),
    layers: change.layers ?? [layersOf('/home/u/app')],
    nestedReadOnly: [],
    facts: factsOf(change),
    home: change.home ?? '/home/u',
    files: change.files ?? [],
  })

function inputOf(change: FixtureChange): PlanInput {
  const requester = change.requester ?? { uid: 1000, gid: 1000, groups: [1000, 27] }
  const owner = change.baseOwner ?? 1000
  const identity = agentIdentity(requester, { uid: owner, gid: owner }, { uid: 61000, gid: 61000 })
  return {
    profile: withSystem(change.profile),
    requester,
    identity,
    places: placesOf(change),
    facts: factsOf(change),
    hostname: 'puzzle-test',
    cwd: '/home/u/app',
    argv: ['sh', '-c', 'true'],
    environment: { PATH: '/usr/bin' },
    terminal: false,
    landlockAbi: 7,
    seccomp: [{ name: 'standard', bpf: new Uint8Array(8) }],
    descriptors: {
      init: 20,
      status: 21,
      stdio: [0, 1, 2],
      terminals: 22,
      denials: 24,
      ownerMap: identity.shift === null ? null : 23,
      network: null,
    },
    ...change.input,
  }
}

export const planOf = (change: FixtureChange = {}): SpawnPlan => spawnPlan(inputOf(change))

export const joinFixture = () => ({ profile: PROFILE, input: inputOf({}) })
