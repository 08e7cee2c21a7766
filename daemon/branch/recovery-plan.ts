// pure
import type { BranchState } from '../contract/states.ts'
import { unreachable } from '../lib/errors.ts'
import type { DamagedJournal, ReadJournal } from './journal/reader.ts'
import { stateOf } from './journal/reader.ts'

/** What is found in `journal/` about one commit. */
export interface CommitTraces {
  commit: string
  /** `.log`: INTENT is durable. */
  journal: ReadJournal | DamagedJournal | null
  /** `.open`, `.changes` or `.log.new`: staging had begun. */
  leftovers: boolean
}

export type RecoveryStep =
  /** J1: no INTENT, so the base is old; what was staged goes. */
  | { kind: 'sweep'; commit: string }
  /** J3: forward, and back only where the filesystem refuses. */
  | { kind: 'finish'; commit: string; branch: string; journal: ReadJournal }
  /** UNDONE is durable; what was staged goes. */
  | { kind: 'clear'; commit: string; branch: string; journal: ReadJournal }
  /** DONE is durable; only the record of the opening may be left. */
  | { kind: 'tidy'; commit: string; branch: string; journal: ReadJournal }
  /** J6, or a stuck commit: kept and shown, nothing is done. */
  | { kind: 'show'; commit: string; branch: string | null; reason: string }

/** `retry` is a person's word that a stuck commit may be tried again. */
export function planRecovery(
  traces: readonly CommitTraces[],
  retry: ReadonlySet<string> = new Set(),
): RecoveryStep[] {
  return traces.map(({ commit, journal }): RecoveryStep => {
    if (journal === null) return { kind: 'sweep', commit }
    if (journal.kind !== 'read')
      return {
        kind: 'show',
        commit,
        branch: journal.begin?.branch ?? null,
        reason: unreadableReason(commit, journal),
      }
    const { branch } = journal.begin
    switch (stateOf(journal)) {
      case 'intent':
        return { kind: 'finish', commit, branch, journal }
      case 'undone':
        return { kind: 'clear', commit, branch, journal }
      case 'done':
        return { kind: 'tidy', commit, branch, journal }
      case 'stuck':
        if (retry.has(commit)) return { kind: 'finish', commit, branch, journal }
        return { kind: 'show', commit, branch, reason: stuckReason(commit, journal) }
      default:
        return unreachable(stateOf(journal) as never)
    }
  })
}

/** What a person can do about it stands with it: trying again changes nothing. */
const unreadableReason = (commit: string, { kind, reason }: DamagedJournal): string =>
  kind === 'newer'
    ? `the journal of commit ${commit} was written by a newer puzzled (${reason}): use that one`
    : `the journal of commit ${commit} is damaged (${reason}): put journal/${commit}.log of the store back from a backup, or see docs/operations.md, "A journal is damaged"`

function stuckReason(commit: string, journal: ReadJournal): string {
  const last = journal.outcome.at(-1)
  return `Commit ${commit} can neither be finished nor undone${last?.kind === 'stuck' ? `: ${last.reason}` : ''}`
}

/** What became of one commit. */
export interface CommitFate {
  commit: string
  branch: string | null
  fate: 'committed' | 'undone' | 'stuck' | 'swept'
  digest: string | null
  at: string | null
  part: boolean
  /** The commit that it takes back; the branch is then the one of that commit. */
  reverts: string | null
  reason: string
  /** Something was done now; false for what was finished in an earlier life. */
  fresh: boolean
}

/** Where a branch that was on its way into the base has to go, given what its commit came to. */
export function stateAfterCommit(state: BranchState, fate: CommitFate | null): BranchState {
  if (state !== 'staging' && state !== 'committing' && state !== 'commit-stuck') return state
  switch (fate?.fate) {
    case 'committed':
      return fate.part ? 'stopped' : 'committed'
    case 'stuck':
      return 'commit-stuck'
    case 'undone':
    case 'swept':
      return 'stopped'
    case undefined:
      // A journal is unlinked only when the old tree is back, or by retention, long after DONE: without a trace there is
      // nothing to follow, and a review finds out what is still different.
      return 'stopped'
  }
}
