import type { BranchRecord } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { ConflictEntry, Outcome, Selection } from '../contract/engine.ts'
import type { Verdict } from '../contract/verdict.ts'
import { PuzzledError } from '../lib/errors.ts'
import { recordCommit } from './commit-record.ts'
import { isEmpty, outcomeOf } from './outcome.ts'
import type { CommitOutcome, Ports } from './ports.ts'
import { requestsFirst, sendFirst } from './requests-first.ts'
import { resumeRequests } from './resume.ts'
import { announceVerdict, fallBack, judge, type Reviewed, reviewBranch } from './review.ts'

/** Reviews the branch afresh and lands it, or the selected part, if the gate or an approval allows exactly that digest. */
export async function commitBranch(ports: Ports, id: string, selection: Selection | null): Promise<Outcome> {
  const before = await ports.store.read(id)
  if (before.state === 'commit-stuck') return retryStuck(ports, before)
  const reviewed = await reviewBranch(ports, id)
  if (selection === null) return settle(ports, reviewed)
  const part = await selectPart(ports, reviewed, selection)
  return settle(ports, part, part.changeset.digest !== reviewed.changeset.digest)
}

/** It was decided already: nothing is judged anew, the journal is followed to its end. */
async function retryStuck(ports: Ports, stuck: BranchRecord): Promise<Outcome> {
  await ports.audit.record('retry', stuck.id, { digest: stuck.digest })
  const { record, landed } = await ports.retry(stuck)
  await ports.audit.record('retried', stuck.id, { state: record.state, reason: record.reason })
  if (landed) await resumeRequests(ports, record, [record.id])
  return outcomeOf(record)
}

async function selectPart(ports: Ports, reviewed: Reviewed, selection: Selection): Promise<Reviewed> {
  try {
    const changeset = ports.differ.select(reviewed.changeset, selection)
    // What is not selected stays: an empty part must never be taken for an empty branch, which is removed.
    if (isEmpty(changeset))
      throw new PuzzledError('usage', 'The selection holds nothing but the times of directories', {
        hint: `See what there is to choose from: puzzlectl diff ${reviewed.record.id}`,
      })
    const verdict = await judge(ports, reviewed.record, changeset)
    await announceVerdict(ports, reviewed.record.id, changeset, verdict)
    return { ...reviewed, changeset, verdict }
  } catch (error) {
    await fallBack(ports, reviewed.record.id, 'held', 'the selection could not be judged')
    throw error
  }
}

/** From `reviewing`: lands what is allowed or approved, and holds everything else. */
export async function settle(ports: Ports, reviewed: Reviewed, partial = false): Promise<Outcome> {
  const { record, changeset, verdict } = reviewed
  const standing = await ports.outbox.standing(record)
  // It would stop the replay again, and a branch that holds one is not empty.
  if (standing.stopped !== null && (requestsFirst(record) || isEmpty(changeset)))
    return holdFor(ports, record, changeset, standing.stopped)
  if (isEmpty(changeset)) return closeEmpty(ports, record, changeset)
  const permission = await permissionFor(ports, record, changeset, verdict)
  if (permission.kind === 'none') {
    const held = await ports.store.move(record.id, 'held', permission.reason)
    if (verdict.kind === 'hold') await ports.approvals.request(held, changeset, verdict)
    return outcomeOf(held, { changeset, verdict })
  }
  const landed = await land(ports, record, changeset, permission.approval, partial)
  return { ...landed, verdict }
}

/** A person has to say what becomes of one request before anything of the branch can go on. */
async function holdFor(
  ports: Ports,
  record: BranchRecord,
  changeset: Changeset,
  problem: string,
): Promise<Outcome> {
  const reason = `${problem}; decide about it: puzzlectl queue resume or skip`
  return outcomeOf(await ports.store.move(record.id, 'held', reason), { changeset })
}

type Approval = Awaited<ReturnType<Ports['approvals']['check']>>
type Permission = { kind: 'none'; reason: string } | { kind: 'granted'; approval: Approval | null }

async function permissionFor(
  ports: Ports,
  record: BranchRecord,
  changeset: Changeset,
  verdict: Verdict,
): Promise<Permission> {
  if (changeset.changes.some((change) => change.findings.length > 0))
    return { kind: 'none', reason: 'it holds entries that cannot be committed' }
  // A profile in shadow mode is judged and recorded, and never stopped by it.
  if (verdict.shadow) return { kind: 'granted', approval: null }
  if (verdict.kind === 'deny') return { kind: 'none', reason: 'the policy denied it' }
  // Nobody was needed; who was asked all the same, and agreed, is still who let it through.
  if (verdict.kind === 'allow' && record.afterwards !== 'hold') return { kind: 'granted', approval: null }
  const approval = await approvalOf(ports, record, changeset, verdict)
  if (approval === null && verdict.kind !== 'allow') return { kind: 'none', reason: 'it waits for a person' }
  return { kind: 'granted', approval }
}

async function approvalOf(
  ports: Ports,
  record: BranchRecord,
  { digest }: Changeset,
  { policies }: Verdict,
): Promise<Approval | null> {
  try {
    return await ports.approvals.check(record, digest, policies)
  } catch (error) {
    if (error instanceof PuzzledError && error.code === 'approval-invalid') return null
    throw error
  }
}

/** An agent that changed nothing leaves nothing to decide about. */
async function closeEmpty(ports: Ports, record: BranchRecord, changeset: Changeset): Promise<Outcome> {
  await ports.store.move(record.id, 'discarding', 'nothing was changed')
  await ports.store.discard(record.id)
  return outcomeOf({ ...record, state: 'discarded', reason: 'nothing was changed' }, { changeset })
}

async function land(
  ports: Ports,
  record: BranchRecord,
  changeset: Changeset,
  granted: Approval | null,
  partial: boolean,
): Promise<Outcome> {
  const approval = granted?.id ?? null
  // On record before anything lands: whoever looks later, also after a crash, sees who let it through.
  await ports.store.move(record.id, 'staging', 'the new files are being staged', {
    approval: granted === null ? null : { ...granted, digest: changeset.digest },
  })
  const first = requestsFirst(record) && changeset.requests.length > 0
  let landed: CommitOutcome
  let sent = 0
  try {
    if (first) {
      const result = await sendFirst(ports, record, changeset, approval)
      sent = result.sent
      if (result.problem !== null)
        return await holdFor(ports, record, changeset, `no file was changed: ${result.problem}`)
    }
    landed = await ports.committer.commit(record, changeset, {
      beforeIntent: async (commit) => {
        await recordCommit(ports, record, changeset, commit, approval)
        if (first) return
        await ports.gate.consume(changeset, commit)
        if (approval !== null) await ports.approvals.consume(approval, commit)
        // Before INTENT, because recovery finishes what has one: exactly these are sent, even by another process.
        await ports.outbox.approve(record, changeset.requests)
      },
      afterIntent: async () => {
        await ports.store.move(record.id, 'committing', 'the commit is decided and being applied')
      },
    })
  } catch (error) {
    return failedToLand(ports, record.id, changeset, error, sent)
  }
  return landedOutcome(ports, record.id, changeset, landed, partial)
}

async function landedOutcome(
  ports: Ports,
  id: string,
  changeset: Changeset,
  landed: CommitOutcome,
  partial: boolean,
): Promise<Outcome> {
  const at = ports.clock.now().toISOString()
  const commit = { id: landed.commit, at, digest: landed.digest }
  const done = partial
    ? await ports.store.move(
        id,
        'stopped',
        `a part was committed as ${landed.commit}; the rest is still here`,
        { commit },
      )
    : await ports.store.move(id, 'committed', 'committed', { commit })
  await ports.audit.record('committed', id, {
    commit: landed.commit,
    digest: landed.digest,
    files: landed.files,
  })
  ports.events.publish({ kind: 'commit', branch: id, time: at, commit: landed.commit, digest: landed.digest })
  const requests = requestsFirst(done) ? [] : await sendRequests(ports, done, changeset)
  return outcomeOf(done, { changeset, warnings: [...landed.warnings, ...requests] })
}

/** The files are real now; the requests follow. What cannot be sent is kept and shown, never silently dropped. */
async function sendRequests(
  ports: Ports,
  record: BranchRecord,
  changeset: Changeset,
): Promise<readonly { path: string; message: string }[]> {
  if (changeset.requests.length === 0) return []
  const { sent, problem } = await ports.outbox.replay(record)
  await ports.audit.record('replayed', record.id, { sent, problem })
  return problem === null ? [] : [{ path: 'requests', message: problem }]
}

/**
 * Where a commit that did not happen leaves the branch: its changes stay, the base is the old one. Only of a commit that
 * is stuck nobody can say that.
 */
async function failedToLand(
  ports: Ports,
  id: string,
  changeset: Changeset,
  error: unknown,
  sent: number,
): Promise<Outcome> {
  const current = await ports.store.read(id)
  const code = error instanceof PuzzledError ? error.code : 'internal'
  const before = sent === 0 ? '' : `; ${sent} of its requests had been sent by then`
  const message = `${error instanceof Error ? error.message : error}${before}`
  if (code === 'stuck') return outcomeOf(await ports.store.move(id, 'commit-stuck', message), { changeset })
  if (current.state !== 'committing' && code === 'conflict') {
    const held = await ports.store.move(id, 'held', `the base changed since the fork${before}`)
    return outcomeOf(held, { changeset, conflicts: conflictsOf(error) })
  }
  await fallBack(ports, id, 'stopped', `the commit failed and nothing was changed: ${message}`)
  throw error
}

function conflictsOf(error: unknown): readonly ConflictEntry[] {
  const data = error instanceof PuzzledError ? error.data?.conflicts : undefined
  return Array.isArray(data) ? (data as ConflictEntry[]) : []
}
