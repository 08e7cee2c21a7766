import type { AgentExit, BranchRecord, Grant } from '../daemon/contract/branch.ts'
import {
  BRANCH,
  BUS_NAME,
  type BusInterface,
  MANAGER,
  MANAGER_PATH,
  signatureOf,
} from '../daemon/contract/bus.ts'
import { fromVariant, structureOf, structuresOf, toEntries } from '../daemon/contract/bus-values.ts'
import type { Change, Changeset } from '../daemon/contract/changeset.ts'
import type { DenialRow } from '../daemon/contract/denial.ts'
import type {
  AgentSession,
  ApprovalRequest,
  Attachment,
  BranchSummary,
  BranchUsage,
  ChangesPage,
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
} from '../daemon/contract/engine.ts'
import type { PuzzledEvent } from '../daemon/contract/events.ts'
import type { FeatureRow } from '../daemon/contract/features.ts'
import type { BudgetKind } from '../daemon/contract/profile.ts'
import { isTerminal } from '../daemon/contract/states.ts'
import type { ToldProvenance } from '../daemon/inspect-audit.ts'
import { type BusConnection, BusError } from '../daemon/lib/bus-connection.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'
import type { TellProgress } from '../daemon/lib/progress.ts'
import { typedError } from './bus-errors.ts'
import { EventWatch, OWNER_MATCH } from './event-watch.ts'
import { Liveness } from './liveness.ts'
import { watchProgress } from './progress-watch.ts'
import { PIPES, SessionClient, streamsOf, TERMINAL } from './session-client.ts'

const CHANGES_AT_ONCE = 1000
const NO_SELECTION: Selection = { only: [], except: [] }

/** The daemon's engine, called over the bus. Whatever the daemon refuses arrives as the same typed error. */
export class BusEngine implements Engine {
  readonly #connection: BusConnection
  readonly #daemon: string
  readonly #live: Liveness
  /** Of agents that were started here and not finished: for these nobody needs to be asked. */
  readonly #paths = new Map<string, string>()

  private constructor(connection: BusConnection, daemon: string, live: Liveness) {
    this.#connection = connection
    this.#daemon = daemon
    this.#live = live
  }

  /** Null when nobody owns the daemon's name. */
  static async open(connection: BusConnection, tell?: TellProgress): Promise<BusEngine | null> {
    const live = new Liveness(connection)
    await live.guard(connection.callBus('AddMatch', 's', [OWNER_MATCH]))
    try {
      const [daemon] = await live.guard(connection.callBus('GetNameOwner', 's', [BUS_NAME]))
      live.follow(String(daemon))
      if (tell !== undefined) watchProgress(connection, String(daemon), tell)
      return new BusEngine(connection, String(daemon), live)
    } catch (error) {
      if (error instanceof BusError && error.busName === 'org.freedesktop.DBus.Error.NameHasNoOwner')
        return null
      throw error
    }
  }

  async create(request: CreateRequest): Promise<BranchRecord> {
    // A request to run is one to create, too; the daemon refuses keys that it does not know.
    const { bases, profile, name, afterwards, command, cwd, budgets } = request
    const asked = { bases, profile, name, afterwards, command, cwd, budgets }
    const [path] = await this.#manager('CreateBranch', [toEntries(asked)])
    return this.#record(String(path), 'Show')
  }

  async run(request: RunRequest): Promise<AgentSession> {
    const { requester: _known, ...asked } = request
    const watch = this.#watchStates()
    try {
      const [path, socket, grants] = await this.#manager('Run', [toEntries(asked)])
      const id = String(path).split('/').at(-1) ?? ''
      this.#paths.set(id, String(path))
      const client = socket === '' ? null : await SessionClient.open(String(socket), true)
      const exited = this.#exit(id, watch)
      // Who does not wait for the end is not told that it could not be heard of.
      exited.catch(() => client?.close())
      return {
        id,
        grants: (grants as unknown[]).map((grant) => fromVariant(grant) as Grant),
        ...streamsOf(client, request.stdio),
        exited,
        resize: (columns, rows) => client?.resize(columns, rows),
        release: () => client?.close(),
      }
    } catch (error) {
      watch.stop()
      throw error
    }
  }

  async finish(id: string): Promise<Outcome> {
    const outcome = await this.#structured<Outcome>(id, 'Finish')
    this.#paths.delete(id)
    return outcome
  }

  async list(): Promise<readonly BranchSummary[]> {
    const [branches] = await this.#manager('ListBranches', [])
    return structuresOf<BranchSummary>(branches)
  }

  async show(id: string): Promise<BranchRecord> {
    return this.#structured<BranchRecord>(id, 'Show')
  }

  /** What runs may change while it is read in parts; then it is read again from its beginning. */
  async changes(id: string, selection: Selection = NO_SELECTION): Promise<Changeset> {
    const path = await this.#path(id)
    for (let left = 2; ; left--)
      try {
        return await this.#allPages(path, selection)
      } catch (error) {
        if (left === 0 || !(error instanceof PuzzledError) || error.code !== 'changed-since-review')
          throw error
      }
  }

  async #allPages(path: string, { only, except }: Selection): Promise<Changeset> {
    const changes: Change[] = []
    for (let from: number | null = 0, digest = ''; ; ) {
      const body = [only, except, digest, from, CHANGES_AT_ONCE]
      const [answer] = await this.#branchCall(path, 'ChangesPage', body)
      const { changeset, next } = structureOf<ChangesPage>(answer)
      for (const change of changeset.changes) changes.push(change)
      if (next === null) return { ...changeset, changes }
      from = next
      digest = changeset.digest
    }
  }

  async content(id: string, base: number, path: Uint8Array, limit: number): Promise<ContentPair> {
    return this.#structured<ContentPair>(id, 'Content', [base, Buffer.from(path), limit])
  }

  async output(id: string, cursor: number, limit: number): Promise<OutputPart> {
    return this.#structured<OutputPart>(id, 'Output', [cursor, limit])
  }

  async exec(id: string, request: CommandRequest): Promise<CommandSession> {
    const [socket] = await this.#branchCall(await this.#path(id), 'Exec', [toEntries(request)])
    const client = await SessionClient.open(String(socket), true)
    return {
      ...streamsOf(client, request.stdio),
      exited: this.#exitOf(client),
      resize: (columns, rows) => client.resize(columns, rows),
      signal: (name) => client.signal(name),
    }
  }

  async attach(id: string): Promise<Attachment> {
    const [socket, terminal] = await this.#branchCall(await this.#path(id), 'Attach', [])
    const client = await SessionClient.open(String(socket), false)
    return {
      ...streamsOf(client, terminal === true ? TERMINAL : PIPES),
      exited: this.#exitOf(client),
      terminal: terminal === true,
      resize: (columns, rows) => client.resize(columns, rows),
      detach: () => client.close(),
    }
  }

  async review(id: string): Promise<Outcome> {
    return this.#structured<Outcome>(id, 'Review')
  }

  async commit(id: string, selection: Selection = NO_SELECTION): Promise<Outcome> {
    return this.#structured<Outcome>(id, 'Commit', [selection.only, selection.except])
  }

  async approve(id: string, decision: ApprovalRequest): Promise<Outcome> {
    const { only, except } = decision.selection ?? NO_SELECTION
    return this.#structured<Outcome>(id, 'Approve', [decision.digest ?? '', only, except, decision.why])
  }

  async reject(id: string, why: string): Promise<BranchRecord> {
    return this.#structured<BranchRecord>(id, 'Reject', [why])
  }

  async discard(id: string): Promise<BranchRecord> {
    return this.#structured<BranchRecord>(id, 'Discard')
  }

  async rebase(id: string, { ours, theirs, drop }: RebaseChoices): Promise<Outcome> {
    return this.#structured<Outcome>(id, 'Rebase', [ours, theirs, drop])
  }

  async pick(id: string, request: PickRequest): Promise<Outcome> {
    return this.#structured<Outcome>(id, 'Pick', [toEntries(request)])
  }

  async revert(commit: string): Promise<Outcome> {
    const [outcome] = await this.#manager('Revert', [commit])
    return structureOf<Outcome>(outcome)
  }

  async signal(id: string, name: string): Promise<SignalResult> {
    const [terminated, survivors] = await this.#branchCall(await this.#path(id), 'Signal', [name])
    return { terminated: Number(terminated), survivors: Number(survivors) }
  }

  async freeze(id: string): Promise<BranchRecord> {
    return this.#structured<BranchRecord>(id, 'Freeze')
  }

  async thaw(id: string): Promise<BranchRecord> {
    return this.#structured<BranchRecord>(id, 'Thaw')
  }

  async extend(id: string, kind: BudgetKind, by: number): Promise<BranchRecord> {
    return this.#structured<BranchRecord>(id, 'Extend', [kind, by])
  }

  async queue(id: string): Promise<readonly QueuedView[]> {
    const [views] = await this.#branchCall(await this.#path(id), 'Queue', [])
    return structuresOf<QueuedView>(views)
  }

  async queueAct(id: string, request: string, action: QueueAction, why: string): Promise<QueueResult> {
    return this.#structured<QueueResult>(id, 'QueueAct', [request, action, why])
  }

  async queueBody(id: string, request: string, limit: number): Promise<ContentSide> {
    return this.#structured<ContentSide>(id, 'QueueBody', [request, limit])
  }

  async queueEdit(id: string, request: string, edit: QueueEdit, why: string): Promise<Outcome> {
    return this.#structured<Outcome>(id, 'QueueEdit', [request, toEntries(edit), why])
  }

  async netTest(id: string, method: string, url: string): Promise<NetTestAnswer> {
    return this.#structured<NetTestAnswer>(id, 'NetTest', [method, url])
  }

  async recentEvents(filter: EventFilter): Promise<readonly PuzzledEvent[]> {
    const [events] = await this.#manager('Events', [])
    return structuresOf<PuzzledEvent>(events).filter(
      (event) => filter.branch === null || event.branch === filter.branch,
    )
  }

  async usage(id: string): Promise<BranchUsage> {
    return this.#structured<BranchUsage>(id, 'Usage', [])
  }

  async denials(id: string): Promise<readonly DenialRow[]> {
    const [rows] = await this.#branchCall(await this.#path(id), 'Denials', [])
    return structuresOf<DenialRow>(rows)
  }

  async *events(filter: EventFilter, signal: AbortSignal): AsyncGenerator<PuzzledEvent> {
    const watch = this.#watchStates()
    signal.addEventListener('abort', watch.stop)
    try {
      // The daemon tells those who have called it.
      await this.#live.guard(this.#connection.call({ ...PING, destination: this.#daemon }))
      for (;;) {
        const event = await this.#live.guard(watch.next())
        if (event === undefined) return
        if (filter.branch === null || event.branch === filter.branch) yield event
      }
    } finally {
      watch.stop()
    }
  }

  async features(): Promise<readonly FeatureRow[]> {
    const [rows] = await this.#manager('Doctor', [])
    return structuresOf<FeatureRow>(rows)
  }

  /** The last commits that touched a path, as far as the caller may hear of them. */
  async blame(path: string, most: number): Promise<readonly ToldProvenance[]> {
    const [commits] = await this.#manager('Blame', [path, most])
    return structuresOf<ToldProvenance>(commits)
  }

  async collect(): Promise<CollectResult> {
    const [result] = await this.#manager('Collect', [])
    return structureOf<CollectResult>(result)
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  /** Waits for the record to say that the agent has ended; the signal only says when to look. */
  async #exit(id: string, watch: EventWatch): Promise<AgentExit> {
    try {
      for (;;) {
        const { exit, state } = await this.#shownOrFinished(id)
        if (exit !== null) return exit
        if (isTerminal(state)) throw new PuzzledError('internal', `Branch ${id} ended without an exit status`)
        // Of sixty-four branches, each would look at every event of every other.
        for (;;) {
          const event = await this.#live.guard(watch.next())
          if (event === undefined || event.branch === id) break
        }
      }
    } finally {
      watch.stop()
    }
  }

  /** Of what runs behind a socket of the daemon, which says nothing either when the daemon stands still. */
  #exitOf(client: SessionClient): Promise<AgentExit> {
    const exited = this.#live.guard(client.exited)
    exited.catch(() => client.close())
    return exited
  }

  /** A branch whose agent changed nothing is gone as soon as it has ended; how, the daemon still tells. */
  async #shownOrFinished(id: string): Promise<Pick<Outcome, 'exit' | 'state'>> {
    try {
      return await this.show(id)
    } catch (error) {
      if (error instanceof PuzzledError && error.code === 'branch-unknown') return this.finish(id)
      throw error
    }
  }

  async #structured<Result>(id: string, method: string, body: readonly unknown[] = []): Promise<Result> {
    const [result] = await this.#branchCall(await this.#path(id), method, body)
    return structureOf<Result>(result)
  }

  async #record(path: string, method: string): Promise<BranchRecord> {
    const [result] = await this.#branchCall(path, method, [])
    return structureOf<BranchRecord>(result)
  }

  async #path(id: string): Promise<string> {
    const known = this.#paths.get(id)
    if (known !== undefined) return known
    const [path] = await this.#manager('GetBranch', [id])
    return String(path)
  }

  #manager(method: string, body: readonly unknown[]): Promise<unknown[]> {
    return this.#call(MANAGER_PATH, MANAGER, method, body)
  }

  #branchCall(path: string, method: string, body: readonly unknown[]): Promise<unknown[]> {
    return this.#call(path, BRANCH, method, body)
  }

  async #call(
    path: string,
    face: BusInterface,
    member: string,
    body: readonly unknown[],
  ): Promise<unknown[]> {
    const signature = signatureOf(face.methods[member]?.in ?? [])
    const call = { destination: BUS_NAME, path, interface: face.name, member }
    try {
      return await this.#live.guard(
        this.#connection.call(signature === '' ? call : { ...call, signature, body }),
      )
    } catch (error) {
      throw error instanceof BusError ? typedError(error) : error
    }
  }

  #watchStates(): EventWatch {
    return new EventWatch(this.#connection, this.#daemon)
  }
}

const BUS = 'org.freedesktop.DBus'
const PING = { path: MANAGER_PATH, interface: `${BUS}.Peer`, member: 'Ping' } as const
