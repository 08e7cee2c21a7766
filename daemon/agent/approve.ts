import type { BranchRecord } from '../contract/branch.ts'
import type { ApprovalRequest, Outcome } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { commitBranch } from './commit.ts'
import { discardBranch } from './discard.ts'
import { outcomeOf } from './outcome.ts'
import type { Ports } from './ports.ts'
import { changesetOf } from './review.ts'
import type { RunningAgents } from './running.ts'

/** Records a person's approval of exactly one digest; lands the branch when no further approval is missing. */
export async function approveBranch(ports: Ports, id: string, request: ApprovalRequest): Promise<Outcome> {
  const record = await heldRecord(ports, id)
  const whole = await changesetOf(ports, record)
  // A part is one of what was judged: the terms of its approval are those of the whole.
  requireReviewed(id, record.digest, whole.digest)
  const changeset = request.selection === null ? whole : ports.differ.select(whole, request.selection)
  if (request.digest !== null) requireReviewed(id, request.digest, changeset.digest)
  if (record.verdict?.kind === 'deny' && request.selection === null)
    throw new PuzzledError(
      'denied',
      `The policy denies the changes of branch ${id}; an approval cannot override that`,
      {
        hint: `See why: puzzlectl show ${id}. A part that is allowed can be approved with --only or --except.`,
      },
    )
  const { complete, missing } = await ports.approvals.decide(
    record,
    changeset.digest,
    'approve',
    request.by,
    request.why,
  )
  await audit(ports, record, 'approve', changeset.digest, request)
  if (!complete)
    return outcomeOf({ ...record, reason: `${missing} more approval(s) are needed` }, { changeset })
  return commitBranch(ports, id, request.selection)
}

/** Refuses the branch: nothing of it will land, its layers go to the trash. */
export async function rejectBranch(
  ports: Ports,
  running: RunningAgents,
  id: string,
  request: Pick<ApprovalRequest, 'by' | 'why'>,
): Promise<BranchRecord> {
  const record = await heldRecord(ports, id)
  const digest = record.digest ?? ''
  await ports.approvals.decide(record, digest, 'reject', request.by, request.why)
  await audit(ports, record, 'reject', digest, request)
  return discardBranch(ports, running, id)
}

function requireReviewed(id: string, reviewed: string | null, now: string): void {
  if (reviewed !== now)
    throw new PuzzledError('changed-since-review', `Branch ${id} is no longer what was reviewed`, {
      hint: `Look again: puzzlectl review ${id}`,
      data: { reviewed, now },
    })
}

async function heldRecord(ports: Ports, id: string): Promise<BranchRecord> {
  const record = await ports.store.read(id)
  if (record.state !== 'held')
    throw new PuzzledError(
      'wrong-state',
      `Branch ${id} is ${record.state}; only a held branch can be decided about`,
      {
        hint:
          record.state === 'stopped'
            ? `Have it judged first: puzzlectl review ${id}`
            : `puzzlectl show ${id}`,
      },
    )
  return record
}

async function audit(
  ports: Ports,
  record: BranchRecord,
  decision: 'approve' | 'reject',
  digest: string,
  request: Pick<ApprovalRequest, 'by' | 'why'>,
): Promise<void> {
  await ports.audit.record(decision, record.id, { digest, by: request.by.uid, why: request.why })
  const time = ports.clock.now().toISOString()
  ports.events.publish({ kind: 'approval', branch: record.id, time, decision, by: request.by.uid, digest })
}
