// pure
import type { Profile } from './profile.ts'
import type { BranchState } from './states.ts'
import type { Verdict } from './verdict.ts'

export interface Requester {
  uid: number
  gid: number
  groups: readonly number[]
  name: string
}

/** One of those who approved. */
export type Approver = Pick<Requester, 'uid' | 'name'>

export interface LostStream {
  stream: 'stdin' | 'stdout' | 'stderr'
  /** Of the first call that failed: `ENOSPC`. */
  errno: string
}

/** When an agent that ended by itself is started again in its branch. */
export interface RestartPolicy {
  when: 'on-failure' | 'always'
  /** At most so many starts after the first; null: without end. */
  times: number | null
}

/** An agent has ended and is started again after a pause. */
export interface AgentAgain extends Pick<AgentExit, 'code' | 'signal'> {
  /** Which start after the first it will be. */
  restart: number
  pauseMillis: number
}

export interface AgentExit {
  /** Exactly one of the two is set. */
  code: number | null
  signal: string | null
  /** Why we think it ended, where the status alone does not tell. */
  cause: 'exited' | 'signal' | 'timeout' | 'oom' | 'budget' | 'daemon-restart'
  /** A sentence for a person: which budget, and how much of it. */
  why?: string
  /** What did not pass between it and the files or pipes of its caller, because those failed; absent: all of it did. */
  lost?: readonly LostStream[]
  /** How often it had been started again before this end; absent: never. */
  restarts?: number
  startedAt: string
  endedAt: string
  cpuUserMs: number
  cpuSystemMs: number
  maxRssBytes: number
}

/** What was asked of the kernel and what it granted; shown to the user (must-sentence 3). */
export interface Grant {
  what: string
  requested: string
  granted: string
  full: boolean
}

/** How the wall clock stood at some moment. */
export interface ClockMark {
  /** The kernel's id of the boot. */
  boot: string
  /** The time of that boot by the wall clock, in ms since 1970: another one later means that the clock was set. */
  bootedAt: number
}

export interface BaseRecord {
  /** Absolute, canonical. */
  path: string
  dev: number
  /** What tells its filesystem from every other that gets the same number; absent where the kernel does not say. */
  filesystemId?: string
  filesystem: string
  /** Mounts nested below the base at fork time and what was done with them; `hidden`: the agent sees what is under it. */
  nested: readonly { path: string; handling: 'overlay' | 'read-only' | 'hidden' }[]
}

/** `branch.json`: the one durable record of a branch. Nothing in it was written by the agent. */
export interface BranchRecord {
  version: 1
  id: string
  name: string | null
  state: BranchState
  /** Why it is in this state, for people. */
  reason: string
  createdAt: string
  updatedAt: string
  /** At the fork; absent in records that are older than this. */
  clock?: ClockMark
  requester: Requester
  bases: readonly BaseRecord[]
  profile: { name: string; sha256: string; resolved: Profile }
  command: readonly string[]
  cwd: string
  /** Absent: it is started once. */
  restart?: RestartPolicy
  /** When it was last to be started again, and after which end. */
  restarted?: AgentAgain & { at: string }
  afterwards: 'gate' | 'hold' | 'discard'
  /** Number of layers per base; the top one is writable. */
  layers: number
  parent: string | null
  exit: AgentExit | null
  grants: readonly Grant[]
  /** Of the last changeset that was computed. */
  digest: string | null
  verdict: Verdict | null
  commit: { id: string; at: string; digest: string } | null
  /** Who let the changes of this digest land where the verdict was to hold them; absent or null: nobody was needed. */
  approval?: { id: string; digest: string; by: readonly Approver[] } | null
  /** Limits that were extended by a person, by budget kind. */
  extensions: Readonly<Record<string, number>>
  /** What its agent and the commands in its place have used up for good, by budget kind; absent: nothing yet. */
  used?: Readonly<Record<string, number>>
}
