import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { announcing } from './agent/announce.ts'
import { EventStream } from './agent/event-stream.ts'
import { LocalEngine } from './agent/local-engine.ts'
import { measuring } from './agent/measure.ts'
import type { Auditor, Ports } from './agent/ports.ts'
import { AuditLog } from './audit/log.ts'
import { archiveOld } from './audit/prune.ts'
import { ARCHIVED_KIND } from './audit/record.ts'
import { ownThreads, sameThread, WorkerCommitter } from './branch/committer.ts'
import { LayerDiffer } from './branch/diff.ts'
import { FileOutputLogs } from './branch/output-log.ts'
import { OverlayLayers } from './branch/overlay.ts'
import { WorkerRebaser } from './branch/rebaser.ts'
import { BranchSpace } from './branch/space.ts'
import { FileBranchStore } from './branch/store.ts'
import { openStoreDirectory } from './branch/store-directory.ts'
import { type RecoveryReport, recoverBranch, recoverBranches } from './branch/store-recovery.ts'
import { budgeting } from './budget-parts.ts'
import type { BranchRecord, Requester } from './contract/branch.ts'
import type { CollectResult, Engine } from './contract/engine.ts'
import type { FeatureName, Features } from './contract/features.ts'
import type { Profile } from './contract/profile.ts'
import { auditing, listing, networkCounters, openListeners, readBeforeText } from './event-parts.ts'
import { rememberFeatures } from './feature-memory.ts'
import { reserveLowDescriptors } from './kernel/low-descriptors.ts'
import { lackOfRights } from './kernel/root-rights.ts'
import { hearing, keeping, withNetwork } from './launch-parts.ts'
import { commandFiles } from './lib/command-files.ts'
import { CONFIG_PATH, type Config } from './lib/config.ts'
import { nodeFiles } from './lib/durable.ts'
import { PuzzledError } from './lib/errors.ts'
import type { TellProgress } from './lib/progress.ts'
import { readConfig } from './lib/read-config.ts'
import { unreadableState } from './lib/state-place.ts'
import { UndoStack } from './lib/undo.ts'
import { Registry } from './metrics/registry.ts'
import { networks } from './networks.ts'
import { resolveProfile } from './policy/ready-profiles.ts'
import { PolicyParts } from './policy-parts.ts'
import { accountOf } from './sandbox/account.ts'
import { Launcher } from './sandbox/launch.ts'

export interface OpenedEngine {
  engine: LocalEngine
  /** What recovery found and did when the store was opened. */
  recovery: RecoveryReport
  audit: Auditor['record']
  metrics: Registry
  /** Reads policies again: all of them, or none. */
  reload(next: Config): Promise<void>
  release(): Promise<void>
}

const VERSION = process.env.PUZZLED_BUILD_VERSION ?? 'unbuilt'

const now = (): Date => new Date()

/** The engine for one command of `puzzlectl`, where no daemon runs: the same store, the same results. */
export async function openEmbedded(options: {
  stateDir: string | null
  requester: Requester
  /** Hears how far long work is that this process does itself. */
  tell?: TellProgress
}): Promise<Engine> {
  if (process.geteuid?.() !== 0)
    throw new PuzzledError('not-root', 'Branches need root, and no daemon answers on the bus', {
      hint: 'Run it with sudo, or install the daemon once: sudo puzzlectl daemon install. Without root: explain, profile, policy, doctor.',
    })
  const config = await readConfig(CONFIG_PATH)
  const { requester, stateDir, tell } = options
  const there = stateDir === null ? config : { ...config, state_dir: stateDir }
  const { engine } = await openEngine(there, requester, false)
  return engine.as(requester, tell)
}

/** Opens the store, recovers it and builds the engine over it. The order is the order of what relies on what. */
export async function openEngine(
  config: Config,
  requester: Requester,
  canAsk: boolean,
): Promise<OpenedEngine> {
  refuseLack()
  reserveLowDescriptors()
  const undo = new UndoStack()
  try {
    const opened = await construct(config, requester, canAsk, undo)
    return { ...opened, release: () => undo.unwind() }
  } catch (error) {
    throw await undo.unwindAfter(unreadableState(error, canonical(config.state_dir)))
  }
}

function refuseLack(): void {
  const lack = process.geteuid?.() === 0 ? lackOfRights() : null
  if (lack !== null) throw lack
}

/** As the errors of what lies below name it. */
const canonical = (path: string): string => (existsSync(path) ? realpathSync(path) : path)

async function construct(
  config: Config,
  requester: Requester,
  canAsk: boolean,
  undo: UndoStack,
): Promise<Omit<OpenedEngine, 'release'>> {
  const directory = await openStoreDirectory(config.state_dir, canAsk ? nodeFiles : commandFiles, canAsk)
  undo.push('unlock the store', () => directory.close())
  const { path: root, keeps } = directory
  const live = { ...config }
  const [stream, metrics] = [new EventStream(), new Registry()]
  const directoryOf = (id: string): string => files.directory(id)
  const { events, denials, heard, journal, complain } = openListeners(stream, metrics, directoryOf)
  undo.push('hand the last records to the journal', () => journal?.flush())
  // A command has no time to remove what was discarded: that is left to `gc`.
  const emptyTrash = canAsk ? () => void committer.emptyTrash().catch(complain('')) : undefined
  const files = branchStore(root, canAsk, emptyTrash)
  const places = { root, directory: directoryOf }
  const committer = new WorkerCommitter(places, now, canAsk ? ownThreads : sameThread)
  const rebaser = new WorkerRebaser(places)
  undo.push('end the commit workers', () => closeBoth(committer, rebaser))
  const network = networks(files, events.publish, networkCounters(metrics), live)
  const space = new BranchSpace(files)
  undo.push('close the networks', () => network.closeAll())
  undo.push('end the thread that measures', () => space.close())
  const launcher = new Launcher({ network: ({ record }) => network.open(record) })
  const { recovery, log } = await recoverOnRecord(root, { files, committer, launcher }, !canAsk, undo)
  const [differ, policy] = judgingParts(root, files, canAsk)
  undo.push('end the policy workers', () => policy.close())
  if (canAsk) await loadEverything(policy, differ)
  const plain: Ports = {
    store: announcing(files, events, { now }),
    layers: new OverlayLayers(files, root),
    differ,
    committer,
    rebaser,
    gate: policy.gate,
    approvals: policy.approvals,
    launcher: keeping(withNetwork(hearing(listing(launcher, denials), heard), network, complain), keeps),
    budgets: budgeting(canAsk, network, space),
    outbox: network,
    outputs: new FileOutputLogs(directoryOf, now),
    audit: auditing(log, journal),
    events,
    denials,
    profiles: profiles(canAsk),
    features: rememberFeatures(root, VERSION, (names) => probe(root, names)),
    clock: { now },
    retry: (record) => retryCommit(files, committer, record),
    collect: (tell) => collect(root, committer, live, log, tell),
  }
  const ports = measuring(plain, metrics)
  const engine = LocalEngine.over(ports, stream, requester, () => undo.unwind())
  const resumed = engine.resume(recovery.moves.flatMap(({ branch, landed }) => (landed ? [branch] : [])))
  // The daemon serves meanwhile; a command has nobody to go on after it.
  if (canAsk) void resumed.then(() => files.remember(SERVED_LATELY))
  else await resumed
  readBeforeText(metrics, engine, network)
  return { engine, recovery, reload: reloading(policy, live), audit: ports.audit.record, metrics }
}

/** Branches that somebody works with at the same time; a record takes some ten kilobytes. */
const SERVED_LATELY = 64

function judgingParts(root: string, files: FileBranchStore, canAsk: boolean): [LayerDiffer, PolicyParts] {
  const differ = new LayerDiffer(files, { sameThread: !canAsk })
  return [differ, new PolicyParts(root, differ, now, canAsk ? undefined : 1)]
}

/** A start reads every record, some of it several times: what was read is kept until the daemon serves. */
function branchStore(root: string, canAsk: boolean, emptyTrash: (() => void) | undefined): FileBranchStore {
  const files = new FileBranchStore(root, canAsk ? nodeFiles : commandFiles, now, emptyTrash)
  files.remember(Number.POSITIVE_INFINITY)
  return files
}

/** What can change while it runs is taken over when everything else was found good. */
const reloading =
  (policy: PolicyParts, live: Config) =>
  async (next: Config): Promise<void> => {
    await policy.reload()
    Object.assign(live, next)
  }

/** The files of a program may be replaced by an upgrade while it runs: a daemon has read all of them before it serves. */
const loadEverything = async (policy: PolicyParts, differ: LayerDiffer): Promise<void> => {
  await Promise.all([policy.load(), differ.load()])
}

const profiles = (canAsk: boolean): Ports['profiles'] => ({
  resolve: async (name, requester) => {
    if (canAsk) refuseOwnProfile(name, requester)
    const home = accountOf(requester.uid)?.home
    const resolved = await resolveProfile(name, home)
    return { ...resolved, overlays: overlaysOf(resolved.profile, home) }
  },
})

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
  believeCleanEnd: boolean,
  undo: UndoStack,
): Promise<{ recovery: RecoveryReport; log: AuditLog }> {
  const unswept: { branch: string; message: string }[] = []
  const recovery = await recover(parts.files, parts.committer, parts.launcher, (branch, error) =>
    unswept.push({ branch, message: String(error) }),
  )
  const log = await AuditLog.open(join(root, 'audit'), { now, believeCleanEnd })
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

/** The probes are loaded when somebody asks: most starts do not. */
async function probe(root: string, names?: readonly FeatureName[]): Promise<Partial<Features>> {
  const { probeFeatures } = await import('./kernel/features.ts')
  return probeFeatures({
    stateDirectory: root,
    overrides: process.env.PUZZLED_TEST_FEATURES,
    ...(names === undefined ? {} : { only: names }),
  })
}

async function collect(
  root: string,
  committer: WorkerCommitter,
  { retention, audit }: Config,
  log: AuditLog,
  tell: TellProgress | undefined,
): Promise<CollectResult> {
  const kept = await committer.collect(
    { count: retention.commits, ageMs: retention.age * 1000, bytes: retention.bytes },
    tell,
  )
  const trash = await committer.emptyTrash()
  const limits = {
    maxAgeMs: (audit.age ?? Number.POSITIVE_INFINITY) * 1000,
    maxBytes: audit.bytes ?? Number.POSITIVE_INFINITY,
  }
  const announce = (through: number): Promise<number> => log.append(ARCHIVED_KIND, '', { through })
  const archived = await archiveOld(join(root, 'audit'), limits, now().getTime(), announce)
  return {
    branches: trash.branches,
    commits: kept.commits.length,
    bytes: kept.bytes + trash.bytes,
    archived,
  }
}
