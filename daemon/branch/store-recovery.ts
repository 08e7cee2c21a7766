import type { AgentExit, BranchRecord } from '../contract/branch.ts'
import { type BranchState, isTerminal } from '../contract/states.ts'
import { afterRestart } from './lifecycle.ts'
import { type CommitFate, stateAfterCommit } from './recovery-plan.ts'
import type { DamagedBranch, FileBranchStore } from './store.ts'

export interface RecoveryMove {
  branch: string
  from: BranchState
  to: BranchState
  reason: string
  /** The commit that it was in the middle of is in the bases now. */
  landed: boolean
}

/** What a start found and did; shown to the operator and written to the audit log by the caller. */
export interface RecoveryReport {
  commits: readonly CommitFate[]
  moves: readonly RecoveryMove[]
  /** Kept as they are. */
  damaged: readonly DamagedBranch[]
}

/**
 * The answer of every state to "the machine lost power here". Journals are followed first, because they decide what
 * became of the branches that were on their way into a base.
 */
export async function recoverBranches(
  store: FileBranchStore,
  commits: readonly CommitFate[],
  now: Date,
): Promise<RecoveryReport> {
  const moves: RecoveryMove[] = []
  await store.sweepUnborn()
  for (const record of await store.list()) {
    const move = await recoverBranch(store, record, commits, now)
    if (move !== null) moves.push(move)
  }
  return { commits, moves, damaged: await store.damaged() }
}

/** One branch, told what its commits came to. Null when it stays what it is. */
export async function recoverBranch(
  store: FileBranchStore,
  record: BranchRecord,
  commits: readonly CommitFate[],
  now: Date,
): Promise<RecoveryMove | null> {
  const { id, state } = record
  if (isTerminal(state)) return null
  const fate = fateFor(record, commits)
  const to = landing(state) ? stateAfterCommit(state, fate) : afterRestart(state)
  if (to === 'discarding') {
    if (state !== 'discarding')
      await store.settle(id, 'discarding', 'it was not finished when the machine stopped')
    await store.discard(id)
    return {
      branch: id,
      from: state,
      to: 'discarded',
      reason: 'its removal was finished after a restart',
      landed: false,
    }
  }
  const reason = fate?.reason ?? 'puzzled was restarted'
  if (to === state) {
    // What a person tried meanwhile may have led to something else that is wrong.
    if (fate?.fate === 'stuck' && reason !== record.reason) await store.settle(id, to, reason)
    return null
  }
  await store.settle(id, to, reason, changeFor(record, to, fate, now))
  return { branch: id, from: state, to, reason, landed: fate?.fate === 'committed' }
}

const landing = (state: BranchState): boolean =>
  state === 'staging' || state === 'committing' || state === 'commit-stuck'

/** The commit that this branch was in the middle of, not one that it has already heard of. */
function fateFor(record: BranchRecord, commits: readonly CommitFate[]): CommitFate | null {
  const known = record.commit?.at ?? ''
  const own = commits.filter(
    ({ branch, reverts, at, fate }) =>
      branch === record.id && reverts === null && (fate === 'stuck' || (at ?? '') > known),
  )
  const [latest] = own.sort((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1))
  if (latest !== undefined) return latest
  // A journal that cannot even say whose it is might be this branch's: uncertain is stuck and visible.
  return landing(record.state)
    ? (commits.find(({ branch, fate }) => branch === null && fate === 'stuck') ?? null)
    : null
}

function changeFor(
  record: BranchRecord,
  to: BranchState,
  fate: CommitFate | null,
  now: Date,
): Partial<BranchRecord> {
  if (fate?.fate === 'committed' && fate.digest !== null && fate.at !== null)
    return { commit: { id: fate.commit, at: fate.at, digest: fate.digest } }
  if (to === 'stopped' && (record.state === 'running' || record.state === 'frozen'))
    return { exit: interrupted(record, now) }
  return {}
}

/** Nobody was there to collect the agent's status; what is known is that it is over. */
const interrupted = (record: BranchRecord, now: Date): AgentExit => ({
  code: null,
  signal: 'SIGKILL',
  cause: 'daemon-restart',
  startedAt: record.updatedAt,
  endedAt: now.toISOString(),
  cpuUserMs: 0,
  cpuSystemMs: 0,
  maxRssBytes: 0,
})
