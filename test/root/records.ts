import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { Profile } from '../../daemon/contract/profile.ts'

/** A profile that grants nothing and limits nothing; tests say what matters to them. */
export const plainProfile = (change: Partial<Profile> = {}): Profile => ({
  name: 'plain',
  description: '',
  enforce: 'enforce',
  mounts: [],
  home: 'hidden',
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
    maxFiles: 1e6,
    maxBytes: 1e12,
    maxDeletions: 1e6,
    policies: [],
    holdPaths: [],
    denyPaths: [],
  },
  require: [],
  prefer: [],
  resources: {},
  rlimits: {},
  ...change,
})

/** A record as the store would hold it right after the fork. */
export const plainRecord = (id: string, change: Partial<BranchRecord> = {}): BranchRecord => ({
  version: 1,
  id,
  name: null,
  state: 'stopped',
  reason: 'test',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  requester: { uid: 0, gid: 0, groups: [], name: 'root' },
  bases: [],
  profile: { name: 'plain', sha256: '', resolved: plainProfile() },
  command: [],
  cwd: '/',
  afterwards: 'hold',
  layers: 1,
  parent: null,
  exit: null,
  grants: [],
  digest: null,
  verdict: null,
  commit: null,
  extensions: {},
  ...change,
})
