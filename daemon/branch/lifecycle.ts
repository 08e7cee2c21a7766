// pure
import { BRANCH_STATES, type BranchState, isTerminal } from '../contract/states.ts'

/**
 * What can happen to a branch. `restarted` is the power cut or the new daemon: it has a cell in every state that is
 * not terminal, so "the machine died here" always has an answer.
 */
export const LIFECYCLE_EVENTS = [
  'prepared',
  'start',
  'freeze',
  'thaw',
  'exit',
  'review',
  'allow',
  'hold',
  'deny',
  'approve',
  'reject',
  'intent',
  'refused',
  'conflict',
  'done',
  'part',
  'undone',
  'stuck',
  'retry',
  'discard',
  'discarded',
  'restarted',
] as const

export type LifecycleEvent = (typeof LIFECYCLE_EVENTS)[number]
type Row = Readonly<Partial<Record<LifecycleEvent, BranchState>>>
type LiveState = Exclude<BranchState, 'committed' | 'discarded'>

/** The only place that says what may follow what. A move that is not here is an error, never a warning. */
export const LIFECYCLE: Readonly<Record<LiveState, Row & { restarted: BranchState }>> = {
  // Nothing of value exists yet: a half-made branch is removed.
  preparing: { prepared: 'ready', discard: 'discarding', restarted: 'discarding' },
  ready: {
    start: 'running',
    exit: 'stopped',
    review: 'reviewing',
    discard: 'discarding',
    restarted: 'ready',
  },
  // Agents do not outlive the daemon that watches them: what they wrote stays, their processes are swept.
  running: { freeze: 'frozen', exit: 'stopped', discard: 'discarding', restarted: 'stopped' },
  frozen: { thaw: 'running', exit: 'stopped', discard: 'discarding', restarted: 'stopped' },
  stopped: { start: 'running', review: 'reviewing', discard: 'discarding', restarted: 'stopped' },
  // A review is computed again from the layers: half of one is worth nothing, and one whose end could not be recorded
  // is begun anew.
  reviewing: {
    review: 'reviewing',
    allow: 'staging',
    hold: 'held',
    deny: 'stopped',
    refused: 'stopped',
    discard: 'discarding',
    restarted: 'stopped',
  },
  held: {
    approve: 'staging',
    reject: 'stopped',
    review: 'reviewing',
    start: 'running',
    discard: 'discarding',
    restarted: 'held',
  },
  // Without INTENT the base is old. With INTENT on disk recovery raises `intent` first and goes on as committing. Where
  // nobody knows whether INTENT is on disk the journal decides at the next start.
  staging: {
    intent: 'committing',
    refused: 'stopped',
    conflict: 'held',
    stuck: 'commit-stuck',
    restarted: 'stopped',
  },
  // INTENT is durable: the journal decides, forward where it can. After a part landed the rest is still to be decided.
  committing: {
    done: 'committed',
    part: 'stopped',
    undone: 'stopped',
    stuck: 'commit-stuck',
    restarted: 'committing',
  },
  // Neither forward nor back worked. A person looks first; `retry` follows the journal again.
  'commit-stuck': { retry: 'committing', restarted: 'commit-stuck' },
  discarding: {
    discard: 'discarding',
    discarded: 'discarded',
    stuck: 'discard-stuck',
    restarted: 'discarding',
  },
  'discard-stuck': { retry: 'discarding', restarted: 'discarding' },
}

const rowOf = (state: BranchState): Row =>
  state === 'committed' || state === 'discarded' ? {} : LIFECYCLE[state]

/** The state after `event`, or undefined when the table has no such cell. */
export const next = (state: BranchState, event: LifecycleEvent): BranchState | undefined =>
  rowOf(state)[event]

/** The events that lead from one state to another; empty means that the move does not exist. */
export function eventsBetween(from: BranchState, to: BranchState): readonly LifecycleEvent[] {
  const row = rowOf(from)
  return LIFECYCLE_EVENTS.filter((event) => row[event] === to)
}

/** Whether some event other than a restart leads from one state to the other. */
export const canMove = (from: BranchState, to: BranchState): boolean =>
  eventsBetween(from, to).some((event) => event !== 'restarted')

/** Where a branch that was in `state` when the machine stopped has to go; terminal states stay. */
export const afterRestart = (state: BranchState): BranchState => rowOf(state).restarted ?? state

/** The states that can be reached in one move, in the order of the contract. */
export const reachable = (from: BranchState): readonly BranchState[] =>
  BRANCH_STATES.filter((to) => canMove(from, to))

/** `stopped` on the way to `discarded`, said as a person would. */
export function refusal(from: BranchState, to: BranchState): string {
  if (isTerminal(from)) return `the branch is ${from}, which is final`
  return `from "${from}" a branch can only become ${reachable(from)
    .map((state) => `"${state}"`)
    .join(', ')}, not "${to}"`
}
