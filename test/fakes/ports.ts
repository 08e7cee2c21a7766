import { createHash } from 'node:crypto'
import { PassThrough } from 'node:stream'
import type {
  Approvals,
  BranchStore,
  BudgetEnd,
  CommitHooks,
  Launcher,
  LaunchRequest,
  Ports,
  RunningAgent,
} from '../../daemon/agent/ports.ts'
import type { AgentExit, BranchRecord } from '../../daemon/contract/branch.ts'
import type { Change, Changeset } from '../../daemon/contract/changeset.ts'
import type { RunRequest } from '../../daemon/contract/engine.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { FEATURE_NAMES, type FeatureRow, type Features } from '../../daemon/contract/features.ts'
import type { Profile } from '../../daemon/contract/profile.ts'
import type { VerdictKind } from '../../daemon/contract/verdict.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'

/** Everything that a test can set or look at afterwards. */
export interface FakeWorld {
  ports: Ports
  /** Calls in the order in which they happened: `move running`, `audit commit`, `launch`, … */
  log: string[]
  events: PuzzledEvent[]
  records: Map<string, BranchRecord>
  changes: Change[]
  /** The ids of commits that can be reverted. */
  commits: string[]
  verdict: VerdictKind
  profile: Profile
  features: Record<string, FeatureRow>
  approved: Set<string>
  /** What `commit` does after its hooks; throws to fail. */
  onCommit: () => void
  onLaunch: (request: LaunchRequest) => void
  exit: AgentExit
  /** What the meter says to a thaw. */
  refusal: Error | null
  /** Whether the meter was told to rest. */
  restsAsAsked: boolean
  /** What the meter says at the end of an agent. */
  budgetEnd: BudgetEnd
  /** What the profile makes writable on this host. */
  overlays: readonly string[]
  /** The agent ends when this is called; by default at once. */
  endAgent: (() => void) | null
  holdAgent: boolean
  /** What a freeze says of the agent. */
  standsStill: boolean
}

export const REQUESTER = { uid: 1000, gid: 1000, groups: [1000], name: 'dev' }

/** What `run` is asked for where a test does not care. */
export const runRequest = (change: Partial<RunRequest> = {}): RunRequest => ({
  bases: ['/base'],
  profile: 'fixture',
  name: null,
  afterwards: 'gate',
  command: ['true'],
  cwd: '/base',
  requester: REQUESTER,
  budgets: {},
  environment: {},
  setEnvironment: {},
  stdio: { kind: 'pipes' },
  ...change,
})

export const EXITED: AgentExit = {
  code: 0,
  signal: null,
  cause: 'exited',
  startedAt: '2026-01-01T00:00:00.000Z',
  endedAt: '2026-01-01T00:00:01.000Z',
  cpuUserMs: 1,
  cpuSystemMs: 1,
  maxRssBytes: 1,
}

export const fileChange = (path: string, content: string): Change => ({
  base: 0,
  path: Buffer.from(path),
  kind: 'add',
  old: null,
  new: {
    type: 'file',
    mode: 0o644,
    uid: 1000,
    gid: 1000,
    size: content.length,
    mtimeNs: 0n,
    sha256: createHash('sha256').update(content).digest('hex'),
    xattrs: [],
  },
  findings: [],
})

export const profileFixture = (change: Partial<Profile> = {}): Profile => ({
  name: 'fixture',
  description: '',
  enforce: 'enforce',
  mounts: [],
  home: 'private',
  environment: { pass: ['PATH', 'LC_*'], set: { HOME: '/home/agent' } },
  exec: { allow: 'any', deny: [] },
  seccomp: 'standard',
  landlock: { read: [], write: [] },
  namespaces: { time: false },
  network: { mode: 'none', rules: [], expose: [], ports: [], replay: 'after-files', credentials: [] },
  budgets: { limits: { wall: 60 }, atLimit: 'kill' },
  gate: {
    onAgentFailure: 'hold',
    allowSetuid: false,
    maxFiles: 1000,
    maxBytes: 1e9,
    maxDeletions: 100,
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

export function changesetOf(changes: readonly Change[]): Changeset {
  const hash = createHash('sha256')
  for (const change of changes) hash.update(change.path).update(change.new?.sha256 ?? '-')
  const additions = changes.filter((change) => change.kind === 'add').length
  return {
    version: 1,
    bases: ['/base'],
    changes,
    requests: [],
    totals: { files: changes.length, bytes: 0, additions, modifications: 0, deletions: 0 },
    digest: hash.digest('hex'),
  }
}

export function fakeWorld(): FakeWorld {
  const world: FakeWorld = {
    ports: undefined as unknown as Ports,
    log: [],
    events: [],
    records: new Map(),
    changes: [fileChange('a.txt', 'hello')],
    commits: [],
    verdict: 'allow',
    profile: profileFixture(),
    features: Object.fromEntries(FEATURE_NAMES.map((name) => [name, have(name)])),
    approved: new Set(),
    onCommit: () => undefined,
    onLaunch: () => undefined,
    exit: EXITED,
    refusal: null,
    restsAsAsked: false,
    budgetEnd: { used: {}, passed: false },
    overlays: [],
    endAgent: null,
    holdAgent: false,
    standsStill: true,
  }
  world.ports = portsOf(world)
  return world
}

const have = (name: (typeof FEATURE_NAMES)[number]): FeatureRow => ({
  name,
  state: 'have',
  level: 1,
  detail: 'fake',
  lost: '',
  remedy: '',
})

const NO_OUTPUTS: Ports['outputs'] = {
  open: () => ({ write: () => undefined, end: async () => undefined }),
  read: async (_id, cursor) => ({ entries: [], next: cursor, lost: 0 }),
}

function portsOf(world: FakeWorld): Ports {
  return {
    store: fakeStore(world),
    denials: { list: async () => [] },
    layers: {
      prepare: async (_id, bases) => {
        world.log.push('prepare')
        return { bases: bases.map((path) => ({ path, dev: 1, filesystem: 'ext4', nested: [] })), grants: [] }
      },
      mounts: async () => [],
    },
    differ: {
      diff: async () => changesetOf(world.changes),
      select: (changeset, selection) => {
        const chosen = changeset.changes.filter((change) =>
          selection.only.includes(Buffer.from(change.path).toString()),
        )
        if (chosen.length === 0) throw new PuzzledError('usage', 'Nothing is selected')
        return changesetOf(chosen)
      },
      content: async () => ({ before: null, after: null }),
      withRequests: (changeset, requests) => ({ ...changeset, requests }),
    },
    committer: {
      commit: async (_record, changeset, hooks) => fakeCommit(world, changeset, hooks),
      revert: async (commit) => {
        world.log.push(`revert ${commit}`)
        return { commit: 'c2', digest: 'd', files: 1, warnings: [] }
      },
      commits: async () => world.commits,
    },
    rebaser: {
      plan: async (_record, { changes }) => ({ changes, open: [], merged: [] }),
      cut: async (_record, parts) => parts.map(({ change }) => ({ change, bytes: Buffer.from('cut') })),
      reapply: async () => {
        world.log.push('reapply')
      },
    },
    gate: {
      evaluate: async (_record, changeset) => ({
        kind: world.verdict,
        digest: changeset.digest,
        tier: 'auto',
        deny: [],
        hold: [],
        warn: [],
        obligations: [],
        policies: [{ name: 'fake', sha256: '0' }],
        durationMs: 0,
        shadow: false,
      }),
      consume: async () => {
        world.log.push('count limits')
      },
    },
    approvals: fakeApprovals(world),
    launcher: fakeLauncher(world),
    budgets: {
      atLimit: (wished) => wished,
      left: ({ profile }) => profile.resolved.budgets.limits,
      extended: ({ extensions }, kind, by) => ({ ...extensions, [kind]: by }),
      watch: () => ({
        extend: async () => ({ resumed: !world.restsAsAsked }),
        rest: async () => {
          world.restsAsAsked = true
        },
        goOn: () => {
          world.restsAsAsked = false
        },
        usage: async () => ({}),
        refusal: () => world.refusal,
        stop: async (byItself) => (byItself ? world.budgetEnd : { used: {}, passed: false }),
      }),
    },
    outbox: {
      pending: async () => [],
      approve: async () => undefined,
      replay: async () => ({ sent: 0, problem: null }),
      view: async () => [],
      act: async () => ({ sent: 0, problem: null }),
      resume: async () => null,
      standing: async () => ({ sent: 0, stopped: null }),
      body: async () => ({ bytes: new Uint8Array(), size: 0 }),
      edit: async () => undefined,
      test: () => ({ class: 'deny', rule: 'no-rule', reason: 'no rule', open: [] }),
    },
    outputs: NO_OUTPUTS,
    audit: {
      record: async (kind) => {
        world.log.push(`audit ${kind}`)
      },
    },
    events: { publish: (event) => world.events.push(event) },
    profiles: { resolve: async () => ({ profile: world.profile, sha256: 'p', overlays: world.overlays }) },
    features: async () => world.features as unknown as Features,
    clock: { now: () => new Date('2026-01-01T00:00:00Z') },
    retry: async (record) => ({ record, landed: false }),
    collect: async () => ({ branches: 0, commits: 0, bytes: 0, archived: 0 }),
  }
}

async function fakeCommit(world: FakeWorld, changeset: Changeset, hooks: CommitHooks) {
  await hooks.beforeIntent('c1')
  await hooks.afterIntent('c1')
  world.log.push('apply')
  world.onCommit()
  return { commit: 'c1', digest: changeset.digest, files: changeset.changes.length, warnings: [] }
}

function fakeStore(world: FakeWorld): BranchStore {
  const read = async (id: string): Promise<BranchRecord> => {
    const record = world.records.get(id)
    if (record === undefined) throw new PuzzledError('branch-unknown', `No branch ${id}`)
    return record
  }
  const update = async (id: string, change: Partial<BranchRecord>): Promise<BranchRecord> => {
    const next = { ...(await read(id)), ...change }
    world.records.set(id, next)
    return next
  }
  return {
    create: async (record) => {
      world.records.set(record.id, record)
      world.log.push('create')
    },
    read,
    update,
    list: async () => [...world.records.values()],
    resolve: async (text) => (await read(text)).id,
    move: async (id, to, reason, change) => {
      world.log.push(`move ${to}`)
      return update(id, { ...change, state: to, reason })
    },
    discard: async (id) => {
      world.log.push('trash')
      await update(id, { state: 'discarded' })
    },
    directory: (id) => `/store/${id}`,
  }
}

function fakeApprovals(world: FakeWorld): Approvals {
  return {
    request: async () => {
      world.log.push('ask')
    },
    decide: async (_record, digest, decision) => {
      world.log.push(`decide ${decision}`)
      if (decision === 'approve') world.approved.add(digest)
      return { complete: true, missing: 0 }
    },
    check: async (_record, digest) => {
      if (!world.approved.has(digest)) throw new PuzzledError('approval-invalid', 'No approval')
      return { id: `approval-of-${digest}`, by: [{ uid: 1001, name: 'reviewer' }] }
    },
    consume: async (approval) => {
      world.log.push('consume')
      world.approved.delete(approval.slice('approval-of-'.length))
    },
  }
}

function fakeLauncher(world: FakeWorld): Launcher {
  return {
    start: async (request) => {
      world.onLaunch(request)
      world.log.push('launch')
      const exited = new Promise<AgentExit>((resolve) => {
        world.endAgent = () => resolve(world.exit)
        if (!world.holdAgent) resolve(world.exit)
      })
      const agent: RunningAgent = {
        pid: 1,
        grants: [{ what: 'landlock', requested: '7', granted: '7', full: true }],
        exited,
        signal: async () => ({ terminated: 1, survivors: 0 }),
        kill: async () => {
          world.log.push('kill')
          world.endAgent?.()
          return { terminated: 1, survivors: 0 }
        },
        readings: () => ({}),
        pressure: () => null,
        extend: () => undefined,
        exec: async ({ argv }) => {
          world.log.push(`exec ${argv.join(' ')}`)
          return { exited: Promise.resolve(world.exit), signal: async () => undefined }
        },
        attach: () => ({ output: new PassThrough().end('hello') }),
        freeze: async () => {
          world.log.push('freeze')
          return world.standsStill
        },
        thaw: async () => {
          world.log.push('thaw')
        },
      }
      return agent
    },
    sweep: async () => {
      world.log.push('sweep')
      world.endAgent?.()
    },
  }
}
