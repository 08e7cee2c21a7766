import type { BranchRecord } from '../contract/branch.ts'
import { type Changeset, type ChangesetTotals, isEcho } from '../contract/changeset.ts'
import type { ConflictEntry, Outcome } from '../contract/engine.ts'
import type { Verdict } from '../contract/verdict.ts'

export const NO_CHANGES: ChangesetTotals = {
  files: 0,
  bytes: 0,
  additions: 0,
  modifications: 0,
  deletions: 0,
}

export interface OutcomeFacts {
  changeset?: Changeset
  /** Where it is about a part: the record has that of the whole. */
  verdict?: Verdict
  conflicts?: readonly ConflictEntry[]
  warnings?: Outcome['warnings']
}

/** What a caller is told about a branch after any step. */
export function outcomeOf(record: BranchRecord, facts: OutcomeFacts = {}): Outcome {
  return {
    branch: record.id,
    name: record.name,
    state: record.state,
    exit: record.exit,
    totals: facts.changeset?.totals ?? NO_CHANGES,
    requests: facts.changeset?.requests.length ?? 0,
    digest: facts.changeset?.digest ?? record.digest,
    verdict: facts.verdict ?? record.verdict,
    commit: record.commit?.id ?? null,
    conflicts: facts.conflicts ?? [],
    warnings: facts.warnings ?? [],
    reason: record.reason,
  }
}

export const isEmpty = (changeset: Changeset): boolean =>
  changeset.changes.every(isEcho) && changeset.requests.length === 0
