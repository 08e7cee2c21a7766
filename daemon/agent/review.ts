import type { BranchRecord } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { Outcome } from '../contract/engine.ts'
import type { Finding, Verdict } from '../contract/verdict.ts'
import { PuzzledError } from '../lib/errors.ts'
import { isEmpty, outcomeOf } from './outcome.ts'
import type { Ports, ReadingPorts } from './ports.ts'

export interface Reviewed {
  record: BranchRecord
  changeset: Changeset
  verdict: Verdict
}

/**
 * Seals the branch, computes what it would change and asks the gate. Ends in `reviewing` with digest and verdict
 * recorded; the caller decides what follows.
 */
export async function reviewBranch(ports: Ports, id: string): Promise<Reviewed> {
  const before = await ports.store.read(id)
  refuseRunning(before)
  // Nothing may write while we look: processes that survived the agent are ended, its mounts are gone.
  await ports.launcher.sweep(id)
  const record = await ports.store.move(id, 'reviewing', 'the changes are being judged')
  try {
    const changeset = await changesetOf(ports, record)
    const verdict = isEmpty(changeset)
      ? nothingToJudge(record, changeset)
      : await judge(ports, record, changeset)
    const judged = await ports.store.update(id, { digest: changeset.digest, verdict })
    await announceVerdict(ports, id, changeset, verdict)
    return { record: judged, changeset, verdict }
  } catch (error) {
    await fallBack(
      ports,
      id,
      'stopped',
      `it could not be judged: ${error instanceof Error ? error.message : error}`,
    )
    throw error
  }
}

/** On record before anything follows from it. A part that was chosen has a verdict of its own. */
export async function announceVerdict(
  ports: Ports,
  branch: string,
  { digest }: Changeset,
  verdict: Verdict,
): Promise<void> {
  const { kind, policies } = verdict
  await ports.audit.record('verdict', branch, { digest, verdict: kind, policies })
  const time = ports.clock.now().toISOString()
  ports.events.publish({ kind: 'verdict', branch, time, verdict: kind, digest })
  if (kind === 'deny') tellDenied(ports, branch, verdict)
}

/** Judges anew and leaves the decision to a person, who is asked where the verdict wants it. */
export async function reviewAndHold(ports: Ports, id: string, reason: string): Promise<Outcome> {
  const { changeset, verdict } = await reviewBranch(ports, id)
  const held = await ports.store.move(id, 'held', reason)
  if (verdict.kind === 'hold') await ports.approvals.request(held, changeset, verdict)
  return outcomeOf(held, { changeset })
}

/** As many as somebody reads; all of them are in the record. */
const MOST_TOLD = 50

function tellDenied(ports: Ports, branch: string, { deny }: Verdict): void {
  const time = ports.clock.now().toISOString()
  for (const { rule, path, message, help } of deny.slice(0, MOST_TOLD)) {
    const event = { kind: 'denial', branch, time, layer: 'policy', rule, message } as const
    const about = { ...event, subject: path ?? 'the changeset' }
    ports.events.publish(help === undefined ? about : { ...about, help })
  }
}

/** Nothing would become real, so no policy is asked: starting one would be most of the time of a run. */
const nothingToJudge = (record: BranchRecord, { digest }: Changeset): Verdict => ({
  kind: 'allow',
  digest,
  tier: 'auto',
  deny: [],
  hold: [],
  warn: [],
  obligations: [],
  policies: [],
  durationMs: 0,
  shadow: record.profile.resolved.enforce === 'shadow',
})

/** Everything that the branch would make real: its files and its requests, under one digest. */
export async function changesetOf(
  ports: Pick<ReadingPorts, 'differ' | 'outbox'>,
  record: BranchRecord,
): Promise<Changeset> {
  const files = await ports.differ.diff(record)
  const requests = await ports.outbox.pending(record)
  return requests.length === 0 ? files : ports.differ.withRequests(files, requests)
}

/**
 * The gate's verdict about a branch's changes or a part of them, made stricter where the agent failed. A verdict about
 * another digest than the one asked for is no verdict.
 */
export async function judge(ports: Ports, record: BranchRecord, changeset: Changeset): Promise<Verdict> {
  const verdict = await ports.gate.evaluate(record, changeset)
  if (verdict.digest !== changeset.digest)
    throw new PuzzledError(
      'policy-failed',
      'The gate answered for another changeset than the one it was asked about',
    )
  return withAgentFailure(record, verdict)
}

/**
 * Where a branch goes after a failure that the caller throws. The disk that made it fail may refuse this record as well:
 * that is told, and never hides the failure itself. The branch can be reviewed or discarded from where it stays.
 */
export async function fallBack(
  ports: Ports,
  id: string,
  to: 'stopped' | 'held',
  reason: string,
): Promise<void> {
  try {
    await ports.store.move(id, to, reason)
  } catch (error) {
    const time = ports.clock.now().toISOString()
    ports.events.publish({
      kind: 'warning',
      branch: id,
      time,
      message: `It is not on record as ${to}: ${error}`,
    })
  }
}

function refuseRunning(record: BranchRecord): void {
  if (record.state === 'running' || record.state === 'frozen')
    throw new PuzzledError('wrong-state', `Branch ${record.id} is ${record.state}`, {
      hint: `Wait for it (puzzlectl wait ${record.id}) or end it (puzzlectl signal ${record.id} TERM).`,
    })
}

/** What a failing agent left behind is not committed without a person, unless the profile says so. */
function withAgentFailure(record: BranchRecord, verdict: Verdict): Verdict {
  const exit = record.exit
  if (exit === null || verdict.kind !== 'allow' || record.profile.resolved.gate.onAgentFailure === 'gate')
    return verdict
  if (exit.code === 0 && exit.cause === 'exited') return verdict
  const how = exit.signal === null ? `with status ${exit.code ?? '?'}` : `by signal ${exit.signal}`
  const finding: Finding = {
    rule: 'agent-failed',
    severity: 'medium',
    message: `The agent ended ${how}; its changes may be half done`,
    help: `Look at them: puzzlectl diff ${record.id}`,
  }
  return { ...verdict, kind: 'hold', hold: [...verdict.hold, finding] }
}
