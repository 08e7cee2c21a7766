// pure
import type { AgentExit, BranchRecord, Grant, Requester, RestartPolicy } from './branch.ts'
import type { Changeset, ChangesetTotals } from './changeset.ts'
import type { DenialRow } from './denial.ts'
import type { PuzzledEvent } from './events.ts'
import type { FeatureRow } from './features.ts'
import type { BudgetKind, RequestClass } from './profile.ts'
import type { BranchState } from './states.ts'
import type { Finding, Verdict } from './verdict.ts'

/**
 * What people and services can do with puzzled. Two implementations: the engine in the caller's process, and the
 * client of the daemon on the bus. One behaviour suite runs against both.
 */
export interface Engine extends EngineReader {
  /** Creates a branch without starting anything in it. */
  create(request: CreateRequest): Promise<BranchRecord>
  /** Creates a branch and starts its command. The session ends when the agent has ended. */
  run(request: RunRequest): Promise<AgentSession>
  /** Waits for the agent to end, then does what `afterwards` says: gate, hold or discard. */
  finish(id: string): Promise<Outcome>
  /**
   * Runs a command in the branch. Where the agent runs, it joins it, in a cgroup of its own, and ends with it at the
   * latest. Where nothing runs and nothing is decided, it runs as the agent did; how that one ended stays on record.
   */
  exec(id: string, request: CommandRequest): Promise<CommandSession>
  /** One more reader of the output of a running agent: what was last written, then all that follows. */
  attach(id: string): Promise<Attachment>
  /** Evaluates the changeset again and records the verdict. */
  review(id: string): Promise<Outcome>
  /** Lands the branch when the gate allows it or an approval for its digest exists. */
  commit(id: string, selection?: Selection): Promise<Outcome>
  approve(id: string, decision: ApprovalRequest): Promise<Outcome>
  reject(id: string, why: string): Promise<BranchRecord>
  discard(id: string): Promise<BranchRecord>
  revert(commit: string): Promise<Outcome>
  /** A new, held branch over the present base with the same changes; with undecided collisions only those are told. */
  rebase(id: string, choices: RebaseChoices): Promise<Outcome>
  /**
   * A new, held branch with a part of the changes, in which files may have only some pieces of theirs. It has a digest of its
   * own and was judged like any other; the old branch stays as it is.
   */
  pick(id: string, request: PickRequest): Promise<Outcome>
  signal(id: string, name: string): Promise<SignalResult>
  freeze(id: string): Promise<BranchRecord>
  thaw(id: string): Promise<BranchRecord>
  /** More of one budget, in base units. A branch that stands still for it goes on. */
  extend(id: string, kind: BudgetKind, by: number): Promise<BranchRecord>
  /** `drop` before the commit; `resume` and `skip` where the replay stopped. */
  queueAct(id: string, request: string, action: QueueAction, why: string): Promise<QueueResult>
  /** The beginning of a request's body, byte for byte. */
  queueBody(id: string, request: string, limit: number): Promise<ContentSide>
  /** Before the commit. The digest changes with it: what was judged is judged again, an earlier approval no longer fits. */
  queueEdit(id: string, request: string, edit: QueueEdit, why: string): Promise<Outcome>
  /** What the gate of this branch would decide about a request; nothing is sent and nothing is counted. */
  netTest(id: string, method: string, url: string): Promise<NetTestAnswer>
  /** The last events, oldest first, as far as this process has kept them. */
  recentEvents(filter: EventFilter): Promise<readonly PuzzledEvent[]>
  /** Every event from now on; ends when the signal aborts. */
  events(filter: EventFilter, signal: AbortSignal): AsyncIterable<PuzzledEvent>
  features(): Promise<readonly FeatureRow[]>
  /** Removes what retention allows: trash, old reverse changesets, terminal records. */
  collect(): Promise<CollectResult>
}

/** What can be asked without changing anything: also of a store that another process uses. */
export interface EngineReader {
  list(): Promise<readonly BranchSummary[]>
  show(id: string): Promise<BranchRecord>
  /**
   * What the branch would change, or the part of it that a selection would land, with its own digest. Running branches
   * are compared as they are at this moment.
   */
  changes(id: string, selection?: Selection): Promise<Changeset>
  /** Bytes of one path that the branch touches, before and after, at most `limit` each; null where it does not exist. */
  content(id: string, base: number, path: Uint8Array, limit: number): Promise<ContentPair>
  /** What the agent wrote, as far as it is kept, from the cursor on (0: the oldest that is kept); about `limit` bytes at once. */
  output(id: string, cursor: number, limit: number): Promise<OutputPart>
  /** The requests of a branch as a person reads them, in the order in which they will be sent. */
  queue(id: string): Promise<readonly QueuedView[]>
  /** What its agent uses at this moment; empty where none runs, or another process holds it. */
  usage(id: string): Promise<BranchUsage>
  /** What the branch was refused so far, oldest first. */
  denials(id: string): Promise<readonly DenialRow[]>
  close(): Promise<void>
}

/** What waits. `some`: at least one process does; `full`: all of them do. Shares of the last ten seconds, in percent. */
export interface PressureShares {
  some10: number
  full10: number
}

export const PRESSURE_RESOURCES = ['cpu', 'memory', 'io'] as const
export type PressureResource = (typeof PRESSURE_RESOURCES)[number]

export interface BranchUsage {
  /** In base units, with what earlier starts have used up for good; `limit`: with what was added. Kinds that nobody reads are left out. */
  budgets: Partial<Record<BudgetKind, { used: number; limit: number | null }>>
  /** What it waited for in vain; left out where the kernel does not say. */
  pressure: Partial<Record<PressureResource, PressureShares>>
}

export interface CreateRequest {
  bases: readonly string[]
  profile: string
  name: string | null
  afterwards: 'gate' | 'hold' | 'discard'
  command: readonly string[]
  cwd: string
  requester: Requester
  /** `kind=value` pairs in base units; narrower than the profile's. */
  budgets: Readonly<Record<string, number>>
}

export interface RunRequest extends CreateRequest {
  /** The caller's environment; the profile decides what of it passes. */
  environment: Readonly<Record<string, string>>
  /** Names that the caller asked for explicitly (`--env K[=V]`). */
  setEnvironment: Readonly<Record<string, string>>
  stdio: SessionStdio
  restart?: RestartPolicy | null
  /** Nobody waits for its end: the engine itself does then what `afterwards` says. */
  unattended?: boolean
}

export type SessionStdio =
  /** The agent's own PTY; descriptors that are not a terminal are handed through. */
  | {
      kind: 'pty'
      columns: number
      rows: number
      inherit: readonly [Stream | null, Stream | null, Stream | null]
    }
  | { kind: 'inherit'; fds: readonly [Stream, Stream, Stream] }
  | { kind: 'pipes' }

/** A descriptor of this process, or a pipe behind which somebody else copies. */
export type Stream = number | CarriedStream

/** What is at its other end is nothing for this process to read, write or close: that could take for ever. */
export interface CarriedStream {
  /** Our end of the pipe. */
  readonly fd: number
  /** Whoever asks has it from then on, and closes it: the other end waits for that. */
  take(): number
  /** Copying may begin. */
  go(): void
  /** No more is copied. */
  stop(): void
  /** Nothing more is copied: all of it was (null), or this errno is why not. */
  readonly ended: Promise<string | null>
}

/** A caller's streams, as this process can use them. */
export interface TakenStreams {
  readonly stdio: SessionStdio
  /** Closes what is ours of them; what has begun to copy goes on. */
  close(): void
}

/** The streams of something that runs, and its end. Which of them there are follows from the `SessionStdio`. */
export interface SessionStreams {
  readonly input?: NodeJS.WritableStream
  readonly output?: NodeJS.ReadableStream
  readonly errors?: NodeJS.ReadableStream
  readonly exited: Promise<AgentExit>
  resize(columns: number, rows: number): void
}

export interface AgentSession extends SessionStreams {
  readonly id: string
  readonly grants: readonly Grant[]
  /** Lets go of its streams; the agent goes on, and what it writes is still kept. */
  release(): void
}

/** Of one command and all that it starts; those of its branch hold as well. */
export interface CommandLimits {
  /** Bytes; who needs more is ended, and the exit says `oom`. */
  memory?: number
  /** Processes and threads. */
  pids?: number
  /** Processors, may be a fraction. */
  cpus?: number
}

export interface CommandRequest {
  command: readonly string[]
  /** Null: where the agent was started. */
  cwd: string | null
  environment: Readonly<Record<string, string>>
  setEnvironment: Readonly<Record<string, string>>
  stdio: SessionStdio
  /** Seconds; after them the command is killed with all that it started, and its exit says `timeout`. */
  timeout: number | null
  /** A host that cannot hold one of them refuses the command. */
  limits?: CommandLimits
}

/** A command belongs to its caller: when that one goes away, it is ended. */
export interface CommandSession extends SessionStreams {
  signal(name: string): Promise<void>
}

export interface Attachment extends SessionStreams {
  /** The agent has a terminal: its output is what that shows, and it can be resized. */
  readonly terminal: boolean
  /** Lets go; the agent goes on. */
  detach(): void
}

export interface OutputEntry {
  at: string
  stream: 'stdout' | 'stderr'
  bytes: Uint8Array
}

export interface OutputPart {
  entries: readonly OutputEntry[]
  /** The cursor behind the last entry. */
  next: number
  /** Bytes between the cursor and the first entry that are no longer kept. */
  lost: number
  /** Nothing will follow by itself: no agent runs. */
  ended: boolean
}

export interface Outcome {
  branch: string
  name: string | null
  state: BranchState
  exit: AgentExit | null
  totals: ChangesetTotals
  requests: number
  digest: string | null
  verdict: Verdict | null
  commit: string | null
  conflicts: readonly ConflictEntry[]
  warnings: readonly { path: string; message: string }[]
  reason: string
}

export interface ConflictEntry {
  path: string
  path64?: string
  message: string
}

export interface Selection {
  only: readonly string[]
  except: readonly string[]
}

/** Of a file that the branch changed: the pieces of its change that are taken, as `hunksOf` counts them. */
export interface FilePart {
  base: number
  path: Uint8Array
  hunks: readonly number[]
  /** How many pieces there were when they were chosen. */
  of: number
}

export interface PickRequest {
  /** Of the whole branch as it was reviewed. */
  digest: string
  /** Null: everything. Files of `parts` belong to it. */
  selection: Selection | null
  parts: readonly FilePart[]
}

/** Globs. Of what both sides changed: whose counts. `drop` leaves out whatever it names. */
export interface RebaseChoices {
  ours: readonly string[]
  theirs: readonly string[]
  drop: readonly string[]
}

export interface ApprovalRequest {
  by: Requester
  /** Refused when the branch's digest is another one. */
  digest: string | null
  selection: Selection | null
  why: string
}

export interface BranchSummary {
  id: string
  name: string | null
  state: BranchState
  reason: string
  profile: string
  command: readonly string[]
  bases: readonly string[]
  createdAt: string
  updatedAt: string
  requester: string
  /** The requester's; names of users are not unique for ever. */
  uid: number
}

/** A part of a changeset: its `changes` from one place on, everything else as of the whole. */
export interface ChangesPage {
  changeset: Changeset
  /** Where the next part begins; null when this was the last. */
  next: number | null
}

export interface ContentPair {
  before: ContentSide | null
  after: ContentSide | null
}

export interface ContentSide {
  bytes: Uint8Array
  /** Size of the whole content; more than `bytes.length` when it was cut. */
  size: number
  /** The branch's requester may not read it: `bytes` is empty. */
  withheld?: true
}

export type QueueAction = 'drop' | 'resume' | 'skip'

export interface QueueResult {
  /** Requests that were sent by this. */
  sent: number
  /** Where the replay stopped; null when nothing stopped it. */
  problem: string | null
  /** Nothing was sent: the request goes with the next commit, which judges it again. */
  waits?: boolean
}

/** What is not named stays as it is. */
export interface QueueEdit {
  method?: string
  url?: string
  /** All values of each named header; none removes it. Credentials are written as their placeholders. */
  headers?: readonly { name: string; values: readonly string[] }[]
  body?: Uint8Array
}

export interface NetTestAnswer {
  class: RequestClass
  rule: string
  reason: string
  help?: string
  /** What only the real request can show. */
  open: readonly string[]
}

export interface QueuedView {
  id: string
  state: string
  detail: string
  queuedAt: string
  method: string
  url: string
  rule: string
  headers: readonly (readonly [string, string])[]
  bytes: number
  sha256: string
  body: string
  cut: boolean
}

export interface SignalResult {
  terminated: number
  survivors: number
}

export interface EventFilter {
  branch: string | null
}

export interface CollectResult {
  branches: number
  commits: number
  bytes: number
  /** Segments of the audit log that were moved to its archive. */
  archived: number
}

export const findingsOf = (verdict: Verdict): readonly Finding[] => [
  ...verdict.deny,
  ...verdict.hold,
  ...verdict.warn,
]
