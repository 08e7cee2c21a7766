import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { announcing } from './agent/announce.ts'
import { EventStream } from './agent/event-stream.ts'
import { LocalEngine } from './agent/local-engine.ts'
import { measuring } from './agent/measure.ts'
import type { Auditor, Budgeting, Gate, Ports, RunningAgent } from './agent/ports.ts'
import { AuditLog } from './audit/log.ts'
import { WorkerCommitter } from './branch/committer.ts'
import { LayerDiffer } from './branch/diff.ts'
import { FileOutputLogs } from './branch/output-log.ts'
import { OverlayLayers } from './branch/overlay.ts'
import { WorkerRebaser } from './branch/rebaser.ts'
import { BranchSpace, type SpaceReader } from './branch/space.ts'
import { FileBranchStore } from './branch/store.ts'
import { openStoreDirectory } from './branch/store-directory.ts'
import { type RecoveryReport, recoverBranch, recoverBranches } from './branch/store-recovery.ts'
import { exceededError, Meter } from './budget/meter.ts'
import type { BranchRecord, Requester } from './contract/branch.ts'
import type { CollectResult, Engine } from './contract/engine.ts'
import type { FeatureName, Features } from './contract/features.ts'
import type { BudgetKind, Profile } from './contract/profile.ts'
import { CONFIG_PATH, type Config, readConfig } from './lib/config.ts'
import { nodeFiles } from './lib/durable.ts'
import { PuzzledError } from './lib/errors.ts'
import { UndoStack } from './lib/undo.ts'
import { counting, networkCounters, readBeforeText } from './measured-parts.ts'
import { Registry } from './metrics/registry.ts'
import { NetworkParts } from './network-parts.ts'
import { ACTION_POLICY_FILE, ActionJudge } from './policy/action-judge.ts'
import { ApprovalStore } from './policy/approvals.ts'
import type { ContentReader } from './policy/contents.ts'
import { DecisionLog } from './policy/decision-log.ts'
import { PolicyGate } from './policy/gate.ts'
import { LimitLedger } from './policy/limits.ts'
import { policySources } from './policy/policy-set.ts'
import { ProfileStore } from './policy/profiles.ts'
import { accountOf } from './sandbox/account.ts'
import { Launcher } from './sandbox/launch.ts'

export interface OpenedEngine {
  engine: LocalEngine
  /** What recovery found and did when the store was opened. */
  recovery: RecoveryReport
  audit: Auditor['record']
  metrics: Registry
  /** Reads policies again: all of them, or none. */
  reload(): Promise<void>
  release(): Promise<void>
}

const now = (): Date => new Date()

/** The engine for one command of `puzzlectl`, where no daemon runs: the same store, the same results. */
export async function openEmbedded(options: {
  stateDir: string | null
  requester: Requester
}): Promise<Engine> {
  if (process.geteuid?.() !== 0)
    throw new PuzzledError('not-root', 'Branches need root, and no daemon answers on the bus', {
      hint: 'Run it with sudo, or install the daemon once: sudo puzzlectl daemon install. Without root: explain, profile, policy, doctor.',
    })
  const config = await readConfig(CONFIG_PATH)
  const { engine } = await openEngine(
    options.stateDir === null ? config : { ...config, state_dir: options.stateDir },
    options.requester,
    false,
  )
  return engine
}

/** Opens the store, recovers it and builds the engine over it. The order is the order of what relies on what. */
export async function openEngine(
  config: Config,
  requester: Requester,
  canAsk: boolean,
): Promise<OpenedEngine> {
  const undo = new UndoStack()
  try {
    const opened = await construct(config, requester, canAsk, undo)
    return { ...opened, release: () => undo.unwind() }
  } catch (error) {
    throw await undo.unwindAfter(error)
  }
}

async function construct(
  config: Config,
  requester: Requester,
  canAsk: boolean,
  undo: UndoStack,
): Promise<Omit<OpenedEngine, 'release'>> {
  const directory = await openStoreDirectory(config.state_dir, nodeFiles)
  undo.push('unlock the store', () => directory.close())
  const root = directory.path
  const stream = new EventStream()
  const metrics = new Registry()
  const events = counting(stream, metrics)
  const complain = (branch: string) => (error: unknown) =>
    events.publish({ kind: 'warning', branch, time: now().toISOString(), message: String(error) })
  // A command has no time to remove what was discarded: that is left to `gc`.
  const emptyTrash = canAsk ? () => void committer.emptyTrash().catch(complain('')) : undefined
  const files = new FileBranchStore(root, nodeFiles, now, emptyTrash)
  const committer = new WorkerCommitter({ root, directory: (id) => files.directory(id) }, now)
  const rebaser = new WorkerRebaser({ root, directory: (id) => files.directory(id) })
  undo.push('end the commit workers', () => closeBoth(committer, rebaser))
  const network = new NetworkParts((id) => files.directory(id), events.publish, networkCounters(metrics))
  undo.push('close the networks', () => network.closeAll())
  const space = new BranchSpace(files)
  undo.push('end the thread that measures', () => space.close())
  const launcher = new Launcher({ network: ({ record }) => network.open(record) })
  const { recovery, log } = await recoverOnRecord(root, { files, committer, launcher }, undo)
  const differ = new LayerDiffer(files)
  const policy = await openPolicy(root, differ, canAsk)
  undo.push('end the policy workers', () => policy.gate.close())
  const plain: Ports = {
    store: announcing(files, events, { now }),
    layers: new OverlayLayers(files, root),
    differ,
    committer,
    rebaser,
    gate: policy.port,
    approvals: policy.approvals,
    launcher: withNetwork(launcher, network, complain),
    budgets: budgeting(canAsk, network, space),
    outbox: network,
    outputs: new FileOutputLogs((id) => files.directory(id), now),
    audit: { record: async (kind, branch, facts) => void (await log.append(kind, branch, facts)) },
    events,
    profiles: canAsk ? DAEMON_PROFILES : { resolve: resolveProfile },
    features: (names) => probe(root, names),
    clock: { now },
    retry: (record) => retryCommit(files, committer, record),
    collect: () => collect(committer, config),
  }
  const ports = measuring(plain, metrics)
  const engine = LocalEngine.over(ports, stream, requester, () => undo.unwind())
  const resumed = engine.resume(recovery.moves.flatMap(({ branch, landed }) => (landed ? [branch] : [])))
  // The daemon serves meanwhile; a command has nobody to go on after it.
  if (!canAsk) await resumed
  const reload = (): Promise<void> => policy.gate.reload().then(() => policy.judge.reload())
  readBeforeText(metrics, engine, network)
  return { engine, recovery, reload, audit: ports.audit.record, metrics }
}

const DAEMON_PROFILES: Ports['profiles'] = {
  resolve: async (name, requester) => {
    refuseOwnProfile(name, requester)
    return resolveProfile(name, requester)
  },
}

const resolveProfile: Ports['profiles']['resolve'] = async (name, requester) => {
  const home = accountOf(requester.uid)?.home
  const resolved = await new ProfileStore().resolve(name, home === undefined ? {} : { home })
  return { ...resolved, overlays: overlaysOf(resolved.profile, home) }
}

/** One that may be missing is left out; any other missing one is an error of the fork, by name. */
const overlaysOf = ({ mounts, home: mode }: Profile, home: string | undefined): string[] => [
  ...(mode === 'overlay' && home !== undefined ? [home] : []),
  ...mounts
    .filter((grant) => grant.mode === 'rw-overlay' && (!grant.optional || existsSync(grant.path)))
    .map((grant) => grant.path),
]

/**
 * A profile says which secrets the daemon reads and which commands it runs for them, and how strict the gate is: in the
 * daemon it is root's word. Who runs puzzlectl as root without a daemon has that word anyway.
 */
function refuseOwnProfile(name: string, { uid }: Requester): void {
  if (uid === 0 || !(name.includes('/') || name.endsWith('.yaml'))) return
  throw new PuzzledError('access-denied', `Only root may name a profile by its file (${name})`, {
    hint: 'Ask for it to be installed in /etc/puzzled/profiles, then use its name.',
  })
}

/** The log opens when the store is what it says; then it is told what was found. */
async function recoverOnRecord(
  root: string,
  parts: { files: FileBranchStore; committer: WorkerCommitter; launcher: Launcher },
  undo: UndoStack,
): Promise<{ recovery: RecoveryReport; log: AuditLog }> {
  const unswept: { branch: string; message: string }[] = []
  const recovery = await recover(parts.files, parts.committer, parts.launcher, (branch, error) =>
    unswept.push({ branch, message: String(error) }),
  )
  const log = await AuditLog.open(join(root, 'audit'), { now })
  undo.push('close the audit log', () => log.close())
  for (const { branch, message } of unswept) await log.append('unswept', branch, { message })
  for (const move of recovery.moves) await log.append('recovered', move.branch, { ...move })
  return { recovery, log }
}

const closeBoth = async (committer: WorkerCommitter, rebaser: WorkerRebaser): Promise<void> => {
  await Promise.all([committer.close(), rebaser.close()])
}

/** Journals first: they decide. Then the processes of branches that nobody watches any more, then the records. */
export async function recover(
  store: FileBranchStore,
  committer: Pick<WorkerCommitter, 'recover'>,
  launcher: Pick<Launcher, 'sweep'>,
  unswept: (branch: string, error: unknown) => void,
): Promise<RecoveryReport> {
  const commits = await committer.recover()
  for (const { id, state } of await store.list())
    if (state === 'running' || state === 'frozen' || state === 'preparing')
      // A process that cannot be ended keeps its own branch from being judged (a review sweeps again), not the store shut.
      await launcher.sweep(id).catch((error: unknown) => unswept(id, error))
  return recoverBranches(store, commits, now())
}

/** Only this branch is settled: the others may be running. */
export async function retryCommit(
  store: FileBranchStore,
  committer: Pick<WorkerCommitter, 'recover'>,
  record: BranchRecord,
): Promise<{ record: BranchRecord; landed: boolean }> {
  const stuck = (await committer.recover()).filter(
    ({ branch, fate }) => branch === record.id && fate === 'stuck',
  )
  const fates = await committer.recover(stuck.map(({ commit }) => commit))
  const move = await recoverBranch(store, record, fates, now())
  return { record: await store.read(record.id), landed: move?.landed === true }
}

/** The network of a branch lives exactly as long as its agent. */
const withNetwork = (
  launcher: Launcher,
  network: NetworkParts,
  complain: (branch: string) => (error: unknown) => void,
): Ports['launcher'] => ({
  start: async (request) => {
    try {
      const agent = await launcher.start(request)
      const exited = agent.exited.then(async (exit) => {
        await network.close(request.record.id).catch(complain(request.record.id))
        return exit
      })
      return { ...delegate(agent), exited }
    } catch (error) {
      await network.close(request.record.id).catch(complain(request.record.id))
      throw error
    }
  },
  sweep: (id) => launcher.sweep(id),
})

/** A plain object in front of the agent: its methods need their own `this`. */
const delegate = (agent: Awaited<ReturnType<Launcher['start']>>): RunningAgent => ({
  pid: agent.pid,
  grants: agent.grants,
  exited: agent.exited,
  signal: (name) => agent.signal(name),
  kill: (cause) => agent.kill(cause),
  freeze: () => agent.freeze(),
  thaw: () => agent.thaw(),
  readings: () => agent.readings(),
  extend: (kind, limit) => agent.extend(kind, limit),
  exec: (request) => agent.exec(request),
  attach: () => agent.attach(),
  ...(agent.resize === undefined ? {} : { resize: agent.resize }),
  ...(agent.input === undefined ? {} : { input: agent.input }),
  ...(agent.output === undefined ? {} : { output: agent.output }),
  ...(agent.errors === undefined ? {} : { errors: agent.errors }),
})

/** A meter per agent. Where nobody could be asked for more, a frozen agent would stand still for ever: it is ended. */
const budgeting = (canAsk: boolean, network: NetworkParts, space: BranchSpace): Budgeting => ({
  atLimit: (wished) => (canAsk ? wished : 'kill'),
  watch: (id, { limits, atLimit }, agent, hooks) => {
    const layers =
      limits.disk === undefined && limits.inodes === undefined ? null : space.readerOf(id, limits)
    const meter = new Meter(limits, atLimit, {
      readings: async () => ({ ...agent.readings(), ...layers?.read(), ...network.readings(id) }),
      freeze: () => agent.freeze(),
      thaw: () => agent.thaw(),
      kill: async () => void (await agent.kill('budget')),
      announce: ({ budget, used, limit, percent }) => hooks.crossed(budget, used, limit, percent),
      exceeded: ({ message, action, ...facts }) => hooks.exceeded(message, action, facts),
      failed: (error, action) => hooks.exceeded(unreadable(error), action, {}),
      extended: (kind, limit) => extendHeld(kind, limit, agent, layers),
      now: () => performance.now(),
    })
    if (Object.keys(limits).length > 0) meter.start()
    return {
      extend: (kind, by) => meter.extend(kind, by),
      refusal: () => refusalOf(meter, id),
      stop: () => meter.stop(),
    }
  },
})

/** A disk that is nearly full is a reason of its own. */
const unreadable = (error: unknown): string =>
  error instanceof PuzzledError && error.code === 'no-space'
    ? `${error.message}. ${error.hint ?? ''}`
    : `Its use cannot be read: ${error}`

function refusalOf(meter: Meter, id: string): Error | null {
  if (meter.exceeded !== null) return exceededError(meter.exceeded, id)
  if (!meter.acted) return null
  return new PuzzledError('budget-exceeded', `Nobody could read what branch ${id} uses, so it stands still`, {
    hint: `It goes on when its use can be read and one of its budgets is extended: puzzlectl budget ${id} …`,
  })
}

function extendHeld(kind: BudgetKind, limit: number, agent: RunningAgent, layers: SpaceReader | null): void {
  if (kind === 'disk' || kind === 'inodes') layers?.extend(kind, limit)
  else agent.extend(kind, limit)
}

async function openPolicy(root: string, differ: LayerDiffer, canAsk: boolean) {
  const directory = join(root, 'policy')
  for (const folder of ['approvals', 'decisions', 'decisions/inputs'])
    await mkdir(join(directory, folder), { recursive: true, mode: 0o700 })
  const judge = new ActionJudge(
    ACTION_POLICY_FILE,
    new LimitLedger(nodeFiles, join(directory, 'limits.json'), now),
    now,
  )
  const decisions = new DecisionLog(nodeFiles, join(directory, 'decisions'))
  const gate = new PolicyGate({
    // One command judges one changeset; a daemon keeps the default, a warm pool.
    ...(canAsk ? {} : { limits: { workers: 1 } }),
    sources: () => policySources(),
    contents: contentsOf(differ),
    judge: (...args) => judge.judge(...args),
    record: (decision) => decisions.record(decision),
  })
  const port: Gate = {
    evaluate: (...args) => gate.evaluate(...args),
    consume: (...args) => judge.consume(...args),
  }
  return { gate, judge, port, approvals: new ApprovalStore(nodeFiles, join(directory, 'approvals'), now) }
}

const contentsOf =
  (differ: LayerDiffer): ContentReader =>
  async (record, change, which, limit) => {
    const { before, after } = await differ.content(record, change.base, change.path, limit, null)
    return (which === 'new' ? after : before)?.bytes ?? null
  }

/** The probes are loaded when somebody asks: most starts do not. */
async function probe(root: string, names?: readonly FeatureName[]): Promise<Partial<Features>> {
  const { probeFeatures } = await import('./kernel/features.ts')
  return probeFeatures({
    stateDirectory: root,
    overrides: process.env.PUZZLED_TEST_FEATURES,
    ...(names === undefined ? {} : { only: names }),
  })
}

async function collect(committer: WorkerCommitter, { retention }: Config): Promise<CollectResult> {
  const kept = await committer.collect({
    count: retention.commits,
    ageMs: retention.age * 1000,
    bytes: retention.bytes,
  })
  const trash = await committer.emptyTrash()
  return { branches: trash.branches, commits: kept.commits.length, bytes: kept.bytes + trash.bytes }
}
