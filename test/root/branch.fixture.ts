import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { AgentExit, BranchRecord } from '../../daemon/contract/branch.ts'
import type { Engine } from '../../daemon/contract/engine.ts'
import type { Profile } from '../../daemon/contract/profile.ts'
import type { Launcher, LaunchRequest } from '../../daemon/sandbox/launch.ts'
import type { OverlayLayers } from '../../daemon/sandbox/places.ts'
import { PROFILE, SYSTEM_MOUNTS } from '../../daemon/sandbox/plan.fixture.ts'

export interface TestBranch {
  readonly record: BranchRecord
  readonly mounts: readonly OverlayLayers[]
  readonly base: string
  readonly upper: string
  remove(): void
}

let count = 0

/** A base and one layer over it, as the branch feature makes them, without its store. */
export function makeBranch(
  options: { owner?: number; requester?: number; profile?: Partial<Profile> } = {},
): TestBranch {
  const owner = options.owner ?? 1000
  const uid = options.requester ?? owner
  const room = mkdtempSync(join(tmpdir(), 'branch-'))
  const base = join(room, 'base')
  const layer = join(room, 'store', '001')
  mkdirSync(base)
  mkdirSync(join(layer, 'upper'), { recursive: true, mode: 0o700 })
  mkdirSync(join(layer, 'work'))
  for (const path of [base, join(layer, 'upper')]) {
    chownSync(path, owner, owner)
    chmodSync(path, 0o755)
  }
  chmodWorld(room)
  const mounts = [...SYSTEM_MOUNTS, ...(options.profile?.mounts ?? [])]
  const profile = { ...PROFILE, ...options.profile, mounts }
  const record: BranchRecord = {
    version: 1,
    id: `test${process.pid}x${count++}`,
    name: null,
    state: 'running',
    reason: '',
    createdAt: new Date(0).toISOString(),
    updatedAt: new Date(0).toISOString(),
    requester: { uid, gid: uid, groups: [uid], name: 'tester' },
    bases: [{ path: base, dev: statSync(base).dev, filesystem: 'ext4', nested: [] }],
    profile: { name: profile.name, sha256: '', resolved: profile },
    command: [],
    cwd: base,
    afterwards: 'hold',
    layers: 1,
    parent: null,
    exit: null,
    grants: [],
    digest: null,
    verdict: null,
    commit: null,
    extensions: {},
  }
  const layers = [{ base, lowers: [base], upper: join(layer, 'upper'), work: join(layer, 'work') }]
  return {
    record,
    mounts: layers,
    base,
    upper: join(layer, 'upper'),
    remove: () => rmSync(room, { recursive: true, force: true }),
  }
}

export interface Ran {
  readonly exit: AgentExit
  readonly output: string
  readonly errors: string
}

export const requestOf = (
  branch: TestBranch,
  argv: readonly string[],
  change: Partial<LaunchRequest> = {},
): LaunchRequest => ({
  record: branch.record,
  profile: branch.record.profile.resolved,
  mounts: branch.mounts,
  argv,
  cwd: branch.base,
  environment: {},
  stdio: { kind: 'pipes' },
  ...change,
})

/** Runs a command to its end and collects what it wrote. */
export async function run(
  launcher: Launcher,
  branch: TestBranch,
  argv: readonly string[],
  change: Partial<LaunchRequest> = {},
): Promise<Ran> {
  const agent = await launcher.start(requestOf(branch, argv, change))
  agent.input?.end()
  const [output, errors, exit] = await Promise.all([
    agent.output === undefined ? '' : text(agent.output),
    agent.errors === undefined ? '' : text(agent.errors),
    agent.exited,
  ])
  return { exit, output, errors }
}

/** Makes what a launcher makes once and keeps (init's memory file, the map of owners), before residue is counted. */
export async function warmUp(launcher: Launcher): Promise<void> {
  if (process.geteuid?.() !== 0) return
  for (const owner of [0, 1000]) {
    const branch = makeBranch({ owner })
    await run(launcher, branch, ['true'])
    branch.remove()
  }
}

/** Search permission for everybody on the way: a requester must be able to reach their base. */
function chmodWorld(room: string): void {
  for (let path = room; path.startsWith(tmpdir()); path = join(path, '..')) {
    const { mode } = statSync(path)
    if ((mode & 0o001) === 0) chmodSync(path, mode | 0o011)
    if (path === tmpdir()) break
  }
}

/** Whose branches the tests of a whole engine are. */
export const DEVELOPER = { uid: 1000, gid: 1000, groups: [1000], name: 'dev' }

/** A script in a branch of its own; what it changed is held. */
export const runScript = (
  engine: Engine,
  base: string,
  script: string,
  budgets: Readonly<Record<string, number>> = {},
) =>
  engine.run({
    ...{ bases: [base], cwd: base, name: null, profile: 'offline', environment: {}, setEnvironment: {} },
    ...{ requester: DEVELOPER, command: ['sh', '-c', script], afterwards: 'hold', budgets },
    stdio: { kind: 'pipes' },
  } as Parameters<Engine['run']>[0])
