import type {
  AgentAgain,
  AgentExit,
  Approver,
  BaseRecord,
  BranchRecord,
  ClockMark,
  Grant,
  Requester,
  RestartPolicy,
} from '../contract/branch.ts'
import type { Change, Changeset, QueuedRequestSummary } from '../contract/changeset.ts'
import type { DenialRow } from '../contract/denial.ts'
import type {
  BranchUsage,
  CollectResult,
  CommandLimits,
  CommandSession,
  ConflictEntry,
  ContentPair,
  ContentSide,
  FilePart,
  NetTestAnswer,
  OutputEntry,
  OutputPart,
  PressureResource,
  PressureShares,
  QueueAction,
  QueuedView,
  QueueEdit,
  QueueResult,
  RebaseChoices,
  Selection,
  SessionStdio,
} from '../contract/engine.ts'
import type { PuzzledEvent } from '../contract/events.ts'
import type { FeatureName, Features } from '../contract/features.ts'
import type { BudgetKind, Profile } from '../contract/profile.ts'
import type { BranchState } from '../contract/states.ts'
import type { Verdict } from '../contract/verdict.ts'
import type { TellProgress } from '../lib/progress.ts'

/** What the use cases need of the outside. The composition roots hand in the adapters; tests hand in fakes. */

export interface BranchStore {
  create(record: BranchRecord): Promise<void>
  read(id: string): Promise<BranchRecord>
  list(): Promise<readonly BranchRecord[]>
  /** Unique prefix of an id, or a name. Throws `branch-unknown` or `branch-ambiguous`. */
  resolve(text: string): Promise<string>
  /** Durable before it resolves; refuses a move that the lifecycle table does not have. */
  move(id: string, to: BranchState, reason: string, change?: Partial<BranchRecord>): Promise<BranchRecord>
  /** Changes data without changing state. */
  update(id: string, change: Partial<BranchRecord>): Promise<BranchRecord>
  /** Rename into `trash/`; the removal itself happens in the background. */
  discard(id: string): Promise<void>
  /** The branch's directory in the store. */
  directory(id: string): string
}

/** Overlay layers of one branch and how the agent's mounts are made from them. */
export interface Layers {
  /** Checks the bases with the requester's rights, makes directories and quota. Cost does not depend on the size of the base. */
  prepare(
    id: string,
    bases: readonly string[],
    profile: Profile,
    requester: Requester,
  ): Promise<{ bases: readonly BaseRecord[]; grants: readonly Grant[]; clock?: ClockMark }>
  /** For each base, what the spawn plan mounts: lower directories (top first), upper and work. */
  mounts(record: BranchRecord): Promise<readonly LayerMount[]>
}

export interface LayerMount {
  base: string
  /** Lower directories, topmost first; the base itself is last. */
  lowers: readonly string[]
  upper: string
  work: string
}

/** Walks the upper layers in a worker and says what the branch would change. */
export interface Differ {
  diff(record: BranchRecord, options?: { onProgress?: (paths: number) => void }): Promise<Changeset>
  /** A part of a changeset, with its own digest. Throws `usage` when nothing is selected. */
  select(changeset: Changeset, selection: Selection): Changeset
  /** The same files with these requests, and so with another digest. */
  withRequests(changeset: Changeset, requests: readonly QueuedRequestSummary[]): Changeset
  /**
   * Both sides of one path that the branch touches, each cut at `limit`. Never follows a symlink. What `reader` may not
   * read is withheld.
   */
  content(
    record: BranchRecord,
    base: number,
    path: Uint8Array,
    limit: number,
    reader: Requester | null,
  ): Promise<ContentPair>
}

export interface CommitOutcome {
  commit: string
  digest: string
  files: number
  /** Setuid bits and capabilities that were removed, hard links that keep their old content, … */
  warnings: readonly { path: string; message: string }[]
}

export interface Committer {
  /** Lands exactly this changeset or nothing. Throws `conflict`, `changed-since-review`, `not-writable`, `no-space`, `stuck`. */
  commit(record: BranchRecord, changeset: Changeset, hooks: CommitHooks): Promise<CommitOutcome>
  revert(commit: string, requester: Requester, tell?: TellProgress): Promise<CommitOutcome>
  /** The ids of all commits that can still be reverted. */
  commits(): Promise<readonly string[]>
}

/** Does the changes of one branch again in another one over the same bases, as they are now. */
export interface Rebaser {
  plan(
    record: BranchRecord,
    changeset: Changeset,
    choices: RebaseChoices,
  ): Promise<{ open: readonly ConflictEntry[] } & Reapplied>
  /** Those files with the chosen pieces of their changes only. Throws `changed-since-review`, and `usage` for what cannot be cut. */
  cut(
    record: BranchRecord,
    parts: readonly { change: Change; part: FilePart }[],
  ): Promise<readonly { change: Change; bytes: Uint8Array }[]>
  /** Writes the changes into the writable layer of `to`, with content from the layers of `from`. Durable. */
  reapply(from: BranchRecord, to: BranchRecord, what: Reapplied): Promise<void>
}

export interface Reapplied {
  changes: readonly Change[]
  /** Of these, those whose content is in no layer: cut, or merged from both sides since what this commit had kept. */
  merged: readonly { change: Change; bytes: Uint8Array; commit?: string }[]
}

export interface CommitHooks {
  /** Called when INTENT is about to become durable: the place where an approval is consumed and audit is written. */
  beforeIntent(commit: string): Promise<void>
  /** Called when INTENT is durable and nothing was applied yet. */
  afterIntent(commit: string): Promise<void>
  /** Hears how far it is. */
  tell?: TellProgress
}

export interface Gate {
  evaluate(record: BranchRecord, changeset: Changeset): Promise<Verdict>
  /** Counts what limits of the action policy this commit uses up; the same commit may call it again. */
  consume(changeset: Changeset, commit: string): Promise<void>
}

/** A person's decision about one digest. Durable, used once. */
export interface Approvals {
  /** Records that this digest waits for a person. */
  request(record: BranchRecord, changeset: Changeset, verdict: Verdict): Promise<void>
  /** Records one decision. Throws `access-denied` (reviewer is the requester), `approval-invalid`. */
  decide(
    record: BranchRecord,
    digest: string,
    decision: 'approve' | 'reject',
    by: Requester,
    why: string,
  ): Promise<{ complete: boolean; missing: number }>
  /** Throws `approval-invalid` unless a complete, unexpired approval for this digest and these policies exists. */
  check(
    record: BranchRecord,
    digest: string,
    policies: Verdict['policies'],
  ): Promise<{ id: string; by: readonly Approver[] }>
  /** Uses the approval up; the same commit may call it again after a crash. */
  consume(approval: string, commit: string): Promise<void>
}

export interface LaunchRequest {
  record: BranchRecord
  profile: Profile
  mounts: readonly LayerMount[]
  argv: readonly string[]
  cwd: string
  environment: Readonly<Record<string, string>>
  /** An own PTY (with descriptors that are handed through), three inherited descriptors, or pipes. */
  stdio: SessionStdio
  /** Is told of what the agent writes, as it passes; must not wait. */
  observe?: (stream: OutputEntry['stream'], bytes: Buffer) => void
  /** Of the first program and what it starts; absent: those of the branch alone. */
  limits?: CommandLimits
  restart?: RestartPolicy | null
  /** Is told when the agent has ended and is started again; must not wait. */
  restarting?: (again: AgentAgain) => void
}

/** A command for a branch whose agent runs. */
export interface JoinRequest {
  argv: readonly string[]
  cwd: string
  environment: Readonly<Record<string, string>>
  stdio: SessionStdio
  timeoutMillis?: number
  limits?: CommandLimits
}

export interface RunningAgent {
  readonly pid: number
  readonly grants: readonly Grant[]
  readonly exited: Promise<AgentExit>
  /** STOP and CONT freeze and thaw; KILL is `cgroup.kill`. */
  signal(name: string): Promise<{ terminated: number; survivors: number }>
  /** Ends everything; `cause` is what the exit will say. */
  kill(cause: AgentExit['cause']): Promise<{ terminated: number; survivors: number }>
  /** Whether all of it stands still; the rest waits inside the kernel, and stands still when it wakes. */
  freeze(): Promise<boolean>
  thaw(): Promise<void>
  /** What the branch uses now; a kind that nobody can read is left out. */
  readings(): Partial<Record<BudgetKind, number>>
  /** What it waited for in vain; null where the kernel does not say. */
  pressure(resource: PressureResource): PressureShares | null
  /** A budget was extended: what holds the old limit outside of the meter is told the new one. */
  extend(kind: BudgetKind, limit: number): void
  /** Starts a command in the agent's namespaces, under the same locks. It ends with the agent at the latest. */
  exec(request: JoinRequest): Promise<Command>
  /** One more reader of the output; destroying the streams detaches. Throws `wrong-state` when it has other readers only. */
  attach(): { output: NodeJS.ReadableStream; errors?: NodeJS.ReadableStream }
  /** Present for a PTY. */
  resize?(columns: number, rows: number): void
  input?: NodeJS.WritableStream
  output?: NodeJS.ReadableStream
  errors?: NodeJS.ReadableStream
}

/** A command that joined an agent. */
export interface Command extends Omit<CommandSession, 'signal' | 'resize'> {
  signal(name: string): Promise<unknown>
  readonly resize?: (columns: number, rows: number) => void
}

export interface Launcher {
  start(request: LaunchRequest): Promise<RunningAgent>
  /** Ends whatever a crashed daemon left of this branch: processes, cgroup, mounts, network. Idempotent. */
  sweep(id: string): Promise<void>
}

/** The requests that a branch made and that wait for its commit. */
export interface Outbox {
  /** What would be sent after a commit; part of the changeset and of its digest. */
  pending(record: BranchRecord): Promise<readonly QueuedRequestSummary[]>
  /** Binds the decision to exactly these requests. Durable; the same requests may be approved again. */
  approve(record: BranchRecord, requests: readonly QueuedRequestSummary[]): Promise<void>
  /** Sends what is approved, in order, and stops at the first that does not succeed. */
  replay(record: BranchRecord): Promise<QueueResult>
  view(record: BranchRecord): Promise<readonly QueuedView[]>
  act(record: BranchRecord, request: string, action: QueueAction, why: string): Promise<QueueResult>
  body(record: BranchRecord, request: string, limit: number): Promise<ContentSide>
  /** Throws `usage`, or `denied` where the rules of the branch would not queue the request as it is then. */
  edit(record: BranchRecord, request: string, edit: QueueEdit): Promise<void>
  /** What the rules say to a request. */
  test(record: BranchRecord, method: string, url: string): NetTestAnswer
  /** How many left already, and the one that a person has to decide about before anything else can leave. */
  standing(record: BranchRecord): Promise<{ sent: number; stopped: string | null }>
  /** Like `replay` where one was interrupted; null where nothing waits, or where a person has to decide first. */
  resume(record: BranchRecord): Promise<QueueResult | null>
}

/** What agents wrote, kept with their branches up to a limit. Nothing here is worth stopping an agent for. */
export interface OutputLogs {
  /** Takes what an agent writes from now on. Never waits and never throws; what the disk refuses is left out. */
  open(id: string): OutputLog
  read(id: string, cursor: number, limit: number): Promise<Omit<OutputPart, 'ended'>>
}

export interface OutputLog {
  write(stream: OutputEntry['stream'], bytes: Buffer): void
  /** Resolves when everything was handed to the kernel. */
  end(): Promise<void>
}

/** Watches one agent until `stop`. */
export interface BudgetWatch {
  /** Gives more of one budget; an agent that stands still for it goes on. */
  extend(kind: BudgetKind, by: number): Promise<{ resumed: boolean }>
  /** The agent is made to stand still as asked: until `goOn` nothing is used up, and no budget makes it stand still. */
  rest(): Promise<void>
  goOn(): void
  /** Every kind that is read or limited, as of now. */
  usage(): Promise<BranchUsage['budgets']>
  /** Why the agent may not simply go on: it stands still for a budget. Null while it may. */
  refusal(): Error | null
  /** The agent has ended: by itself, or because it was ended. */
  stop(byItself: boolean): Promise<BudgetEnd>
}

export interface BudgetEnd {
  /** What the branch has used up for good, in this start and those before it. */
  readonly used: Readonly<Record<string, number>>
  /** The agent ended by itself, and only then was it seen that it had used too much, or that nobody can know. */
  readonly passed: boolean
  /** Which budget it last met, in a sentence. */
  readonly why?: string
}

export interface BudgetHooks {
  crossed(budget: BudgetKind, used: number, limit: number, percent: number): void
  /** The agent stands still or was ended; `none`: it had ended before. */
  exceeded(
    message: string,
    action: 'freeze' | 'kill' | 'none',
    facts: Readonly<Record<string, unknown>>,
  ): void
  /** What the branch has used up for good, now and then: a daemon that is killed must not forget it. */
  spent(used: Readonly<Record<string, number>>): void
}

export interface Budgeting {
  /** What happens at 100 %: the profile's wish, or `kill` where nobody could be asked. */
  readonly atLimit: (wished: 'freeze' | 'kill') => 'freeze' | 'kill'
  /** What is left of the branch's limits for one more start. Throws `budget-exceeded` when one of them is used up. */
  left(record: BranchRecord): Profile['budgets']['limits']
  /** The extensions of a branch in which nothing runs, with this one; `usage` where there is no such limit. */
  extended(record: BranchRecord, kind: BudgetKind, by: number): BranchRecord['extensions']
  /** The limits are those of the record, with what a person has added. */
  watch(
    record: BranchRecord,
    atLimit: Profile['budgets']['atLimit'],
    agent: RunningAgent,
    hooks: BudgetHooks,
  ): BudgetWatch
}

export interface Auditor {
  /** Durable before it resolves; a failure here stops the act. */
  record(kind: string, branch: string, facts: Readonly<Record<string, unknown>>): Promise<void>
}

/** What branches were refused, kept where the agent can read it too. */
export interface Denials {
  list(id: string): Promise<readonly DenialRow[]>
}

export interface Events {
  publish(event: PuzzledEvent): void
}

export interface ResolvedProfile {
  profile: Profile
  sha256: string
  /** Places of this host that the profile makes writable: each is a base, whether it was asked for or not. */
  overlays: readonly string[]
}

export interface Profiles {
  /** With the requester's home in place of `~/`. */
  resolve(name: string, requester: Requester): Promise<ResolvedProfile>
}

export interface Clock {
  now(): Date
}

export interface Ports {
  store: BranchStore
  layers: Layers
  differ: Differ
  committer: Committer
  rebaser: Rebaser
  gate: Gate
  approvals: Approvals
  launcher: Launcher
  budgets: Budgeting
  outbox: Outbox
  outputs: OutputLogs
  audit: Auditor
  events: Events
  denials: Denials
  profiles: Profiles
  /** Probes by using; only the named ones when names are given, because each costs a start some time. */
  features: (names?: readonly FeatureName[]) => Promise<Partial<Features>>
  clock: Clock
  /** A person's word that a stuck commit may be tried again: follows its journal, forward or back. */
  retry(record: BranchRecord): Promise<{ record: BranchRecord; landed: boolean }>
  /** Applies retention to trash, reverse changesets and terminal records. */
  collect(tell?: TellProgress): Promise<CollectResult>
}

/** What of the ports only looks. */
export interface ReadingPorts {
  store: Pick<Ports['store'], 'list' | 'read' | 'resolve'>
  differ: Pick<Ports['differ'], 'diff' | 'content' | 'select' | 'withRequests'>
  outbox: Pick<Ports['outbox'], 'pending' | 'view'>
  outputs: Pick<Ports['outputs'], 'read'>
  denials: Ports['denials']
}
