import type { Readable } from 'node:stream'
import type { BranchRecord, Requester } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { DenialRow } from '../contract/denial.ts'
import type {
  AgentSession,
  ApprovalRequest,
  Attachment,
  BranchSummary,
  BranchUsage,
  CollectResult,
  CommandRequest,
  CommandSession,
  ContentPair,
  ContentSide,
  CreateRequest,
  Engine,
  EventFilter,
  NetTestAnswer,
  Outcome,
  OutputPart,
  PickRequest,
  QueueAction,
  QueuedView,
  QueueEdit,
  QueueResult,
  RebaseChoices,
  RunRequest,
  Selection,
  SignalResult,
} from '../contract/engine.ts'
import type { PuzzledEvent } from '../contract/events.ts'
import type { FeatureRow } from '../contract/features.ts'
import { FEATURE_NAMES } from '../contract/features.ts'
import type { BudgetKind } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'
import { KeyLock } from '../lib/key-lock.ts'
import type { TellProgress } from '../lib/progress.ts'
import { approveBranch, rejectBranch } from './approve.ts'
import { commitBranch } from './commit.ts'
import { discardBranch } from './discard.ts'
import { Discards } from './discards.ts'
import { decideRequest, editRequest } from './edit-request.ts'
import type { EventStream } from './event-stream.ts'
import { attachToAgent, execBeside, execInBranch } from './exec.ts'
import { findCommit } from './find-commit.ts'
import { finishBranch, isWorthFinishing } from './finish.ts'
import { type Finished, FinishedBranches } from './finished.ts'
import { forkBranch } from './fork.ts'
import { outcomeOf } from './outcome.ts'
import { pickFromBranch } from './pick.ts'
import type { Ports } from './ports.ts'
import { BranchReader } from './read.ts'
import { rebaseBranch } from './rebase.ts'
import { resumeRequests } from './resume.ts'
import { revertCommit } from './revert.ts'
import { reviewAndHold } from './review.ts'
import { RunningAgents } from './running.ts'
import { extendBudget, freezeBranch, signalBranch, thawBranch } from './signal.ts'
import { reclaim, startAgent } from './start.ts'
import { telling } from './telling.ts'
import { usageOf } from './usage.ts'

interface Shared {
  ports: Ports
  stream: EventStream
  running: RunningAgents
  finished: FinishedBranches
  discards: Discards
  locks: KeyLock<string>
  release: () => Promise<void>
  /** Agents that end now were ended: what they leave is for a person to look at. */
  ending: boolean
}

/** The engine in this process. Verbs on one branch run one after the other; branches do not wait for each other. */
export class LocalEngine implements Engine {
  readonly #shared: Shared
  readonly #ports: Ports
  readonly #requester: Requester
  readonly #reader: BranchReader

  private constructor(shared: Shared, requester: Requester, tell?: TellProgress) {
    this.#shared = shared
    this.#ports = tell === undefined ? shared.ports : telling(shared.ports, tell)
    this.#requester = requester
    this.#reader = new BranchReader(this.#ports, shared.release)
  }

  static over(
    ports: Ports,
    stream: EventStream,
    requester: Requester,
    release: () => Promise<void>,
  ): LocalEngine {
    const shared = {
      ports,
      stream,
      release,
      running: new RunningAgents(),
      finished: new FinishedBranches(),
      discards: new Discards(),
      locks: new KeyLock<string>(),
      ending: false,
    }
    return new LocalEngine(shared, requester)
  }

  /** The same engine on behalf of somebody else, who may want to hear how far long work is. */
  as(requester: Requester, tell?: TellProgress): LocalEngine {
    return new LocalEngine(this.#shared, requester, tell)
  }

  /** Branches whose agents were started by this process and have not ended. */
  running(): readonly string[] {
    return this.#shared.running.ids()
  }

  /** Once, after recovery: requests of commits that landed while nobody was there to send them. Never rejects. */
  async resume(landed: readonly string[]): Promise<void> {
    const records = await this.#ports.store.list().catch(() => [])
    for (const record of records)
      await this.#shared.locks.run(record.id, () => resumeRequests(this.#ports, record, landed))
  }

  /** Before the process ends: every agent is asked, then made, to end. Its branch is `stopped` and keeps its writes. */
  async endAgents(): Promise<void> {
    this.#shared.ending = true
    const { running } = this.#shared
    await Promise.all(
      running.ids().map(async (id) => {
        await running.find(id)?.signal('TERM')
        await running.ended(id)
        await this.#ports.launcher.sweep(id)
      }),
    )
  }

  async create(request: CreateRequest): Promise<BranchRecord> {
    return forkBranch(this.#ports, request)
  }

  async run(request: RunRequest): Promise<AgentSession> {
    const record = await forkBranch(this.#ports, request)
    const { agent, exited } = await startAgent(this.#ports, this.#shared.running, record, request)
    if (request.unattended === true) this.#finishAfter(record.id, exited)
    return {
      id: record.id,
      grants: agent.grants,
      ...(agent.input === undefined ? {} : { input: agent.input }),
      ...(agent.output === undefined ? {} : { output: agent.output }),
      ...(agent.errors === undefined ? {} : { errors: agent.errors }),
      exited,
      resize: (columns, rows) => agent.resize?.(columns, rows),
      release: () => letGo(agent.output, agent.errors),
    }
  }

  /** What fails here is an event; the branch stays stopped, where everybody can see and finish it. */
  #finishAfter(id: string, exited: Promise<unknown>): void {
    const { ports } = this.#shared
    const work = async (): Promise<void> => {
      await exited
      if (!this.#shared.ending && (await isWorthFinishing(ports, id))) await this.finish(id)
    }
    work().catch((error: unknown) =>
      ports.events.publish({
        kind: 'warning',
        branch: id,
        time: ports.clock.now().toISOString(),
        message: `It could not be finished: ${error instanceof Error ? error.message : error}`,
      }),
    )
  }

  async finish(id: string): Promise<Outcome> {
    const { discards, finished, running } = this.#shared
    const record = await this.#recordOrGone(id)
    if (!('requester' in record)) return record.outcome
    return finished.once(record, async (last) => {
      // Not behind the lock: while an agent runs, every other verb must be answered at once.
      await running.ended(record.id)
      const discarded = await discards.of(record.id)
      if (discarded !== null) return outcomeOf(discarded)
      const outcome = await this.#on(record.id, () => finishBranch(this.#ports, running, record.id)).catch(
        async (error: unknown) => {
          // Somebody else finished it since its record was read, and nothing was left of it.
          const earlier = isUnknown(error) ? await last : undefined
          if (earlier === undefined) throw error
          return earlier
        },
      )
      const before = await last
      // Nothing has happened since: what was found then is more than what its record tells.
      return before?.state === outcome.state && before.digest === outcome.digest ? before : outcome
    })
  }

  async #recordOrGone(id: string): Promise<BranchRecord | Finished> {
    try {
      return await this.show(id)
    } catch (error) {
      const gone = this.#shared.finished.find(id)
      if (gone !== undefined && isUnknown(error)) return gone
      throw error
    }
  }

  /** Of branches that ended while this process ran, the latest ones. */
  get finished(): FinishedBranches {
    return this.#shared.finished
  }

  list(): Promise<readonly BranchSummary[]> {
    return this.#reader.list()
  }

  show(id: string): Promise<BranchRecord> {
    return this.#reader.show(id)
  }

  changes(id: string, selection?: Selection): Promise<Changeset> {
    return this.#reader.changes(id, selection)
  }

  content(id: string, base: number, path: Uint8Array, limit: number): Promise<ContentPair> {
    return this.#reader.content(id, base, path, limit)
  }

  output(id: string, cursor: number, limit: number): Promise<OutputPart> {
    return this.#reader.output(id, cursor, limit)
  }

  /** The lock is held for the start only: what runs is known to every other verb by the state of its branch. */
  async exec(text: string, request: CommandRequest): Promise<CommandSession> {
    const id = await this.#ports.store.resolve(text)
    const [ports, { running }, { uid }] = [this.#ports, this.#shared, this.#requester]
    const beside = running.knows(id) ? await execBeside(ports, running, id, request, uid) : null
    return beside ?? this.#on(id, (branch) => execInBranch(ports, running, branch, request, uid))
  }

  async attach(id: string): Promise<Attachment> {
    return attachToAgent(this.#ports, this.#shared.running, await this.#ports.store.resolve(id))
  }

  review(id: string): Promise<Outcome> {
    return this.#on(id, (branch) => reviewAndHold(this.#ports, branch, 'reviewed'))
  }

  commit(id: string, selection?: Selection): Promise<Outcome> {
    return this.#on(id, (branch) => commitBranch(this.#ports, branch, selection ?? null))
  }

  approve(id: string, decision: ApprovalRequest): Promise<Outcome> {
    return this.#on(id, (branch) => approveBranch(this.#ports, branch, decision))
  }

  reject(id: string, why: string): Promise<BranchRecord> {
    const by = this.#requester
    return this.#on(id, (branch) => rejectBranch(this.#ports, this.#shared.running, branch, { by, why }))
  }

  async discard(id: string): Promise<BranchRecord> {
    // Not behind the lock of the branch: discarding is also the way out of a `finish` that waits for a long agent.
    const [branch, { discards, running }] = [await this.#ports.store.resolve(id), this.#shared]
    return discards.run(branch, () => discardBranch(this.#ports, running, branch))
  }

  async revert(text: string): Promise<Outcome> {
    const commit = await findCommit(this.#ports, text, this.#requester)
    return this.#shared.locks.run(commit, () => revertCommit(this.#ports, commit, this.#requester))
  }

  rebase(id: string, choices: RebaseChoices): Promise<Outcome> {
    return this.#on(id, (branch) => rebaseBranch(this.#ports, this.#shared.running, branch, choices))
  }

  pick(id: string, request: PickRequest): Promise<Outcome> {
    return this.#on(id, (branch) => pickFromBranch(this.#ports, this.#shared.running, branch, request))
  }

  async signal(id: string, name: string): Promise<SignalResult> {
    return signalBranch(this.#ports, this.#shared.running, await this.#ports.store.resolve(id), name)
  }

  async freeze(id: string): Promise<BranchRecord> {
    return freezeBranch(this.#ports, this.#shared.running, await this.#ports.store.resolve(id))
  }

  async thaw(id: string): Promise<BranchRecord> {
    return thawBranch(this.#ports, this.#shared.running, await this.#ports.store.resolve(id))
  }

  async extend(id: string, kind: BudgetKind, by: number): Promise<BranchRecord> {
    return extendBudget(this.#ports, this.#shared.running, await this.#ports.store.resolve(id), kind, by)
  }

  queue(id: string): Promise<readonly QueuedView[]> {
    return this.#reader.queue(id)
  }

  queueAct(id: string, request: string, action: QueueAction, why: string): Promise<QueueResult> {
    return this.#onQueue(id, (branch) =>
      decideRequest(this.#ports, branch, { request, action, why, by: this.#requester }),
    )
  }

  async queueBody(id: string, request: string, limit: number): Promise<ContentSide> {
    return this.#ports.outbox.body(await this.show(id), request, limit)
  }

  queueEdit(id: string, request: string, edit: QueueEdit, why: string): Promise<Outcome> {
    return this.#onQueue(id, (branch) =>
      editRequest(this.#ports, branch, { request, edit, why, by: this.#requester }),
    )
  }

  async netTest(id: string, method: string, url: string): Promise<NetTestAnswer> {
    return this.#ports.outbox.test(await this.show(id), method, url)
  }

  async recentEvents(filter: EventFilter): Promise<readonly PuzzledEvent[]> {
    return this.#shared.stream.recent((event) => filter.branch === null || event.branch === filter.branch)
  }

  async usage(id: string): Promise<BranchUsage> {
    return usageOf(this.#shared.running, await this.#ports.store.resolve(id))
  }

  async denials(id: string): Promise<readonly DenialRow[]> {
    return this.#reader.denials(id)
  }

  events(filter: EventFilter, signal: AbortSignal): AsyncIterable<PuzzledEvent> {
    return this.#shared.stream.follow(
      (event) => filter.branch === null || event.branch === filter.branch,
      signal,
    )
  }

  async features(): Promise<readonly FeatureRow[]> {
    const features = await this.#ports.features()
    return FEATURE_NAMES.flatMap((name) => features[name] ?? [])
  }

  collect(): Promise<CollectResult> {
    return this.#ports.collect()
  }

  close(): Promise<void> {
    return this.#shared.release()
  }

  /** Whoever waits for an agent's end holds its branch for so long; its queue can be worked on meanwhile. */
  async #onQueue<Result>(text: string, work: (id: string) => Promise<Result>): Promise<Result> {
    const id = await this.#ports.store.resolve(text)
    return this.#shared.running.find(id) === undefined ? this.#on(id, work) : work(id)
  }

  async #on<Result>(text: string, work: (id: string) => Promise<Result>): Promise<Result> {
    const id = await this.#ports.store.resolve(text)
    return this.#shared.locks.run(id, async () => {
      await reclaim(this.#ports, this.#shared.running, id)
      return work(id).catch((error: unknown) => this.#orGone(id, error))
    })
  }

  /** Discarding waits for nobody: whatever failed for want of a branch that went meanwhile failed because of that. */
  async #orGone(id: string, error: unknown): Promise<never> {
    const state = await this.#ports.store.read(id).then(
      (record) => record.state,
      (missing: unknown) => (isUnknown(missing) ? 'discarded' : null),
    )
    // A branch that its own verb has removed, or that says so itself, needs no other words.
    if (state !== 'discarding' && state !== 'discarded') throw error
    if (error instanceof PuzzledError && (error.code === 'wrong-state' || isUnknown(error))) throw error
    throw new PuzzledError('wrong-state', `Branch ${id} was discarded meanwhile`, { cause: error })
  }
}

const isUnknown = (error: unknown): boolean =>
  error instanceof PuzzledError && error.code === 'branch-unknown'

/** The first reader holds an agent up when it is slow; once it is gone nobody does. */
function letGo(...streams: readonly (NodeJS.ReadableStream | undefined)[]): void {
  for (const stream of streams) if (stream !== undefined) (stream as Readable).destroy()
}
