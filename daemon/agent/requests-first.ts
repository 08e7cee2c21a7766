import type { BranchRecord } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { Ports } from './ports.ts'

/** Whether the profile wants the requests of a commit to succeed before its files land. */
export const requestsFirst = ({ profile }: BranchRecord): boolean =>
  profile.resolved.network.replay === 'before-files'

/**
 * Sends the requests of a commit whose files have not landed. The invariants, in the order of the code:
 * - nothing leaves unless the files could land right now: they are staged against the base, and taken away again;
 * - the decision is used up before the first byte leaves, so it can never let anything leave a second time;
 * - no lock on a base is held meanwhile: somebody else's server must not keep other branches from landing;
 * - a request that does not succeed stops everything: no file lands, and nothing is retried without a person.
 * The base can still change between here and INTENT. Then what was sent stays sent, on record, and is no part of the
 * next changeset: docs/decisions/requests-first.md.
 */
export async function sendFirst(
  ports: Ports,
  record: BranchRecord,
  changeset: Changeset,
  approval: string | null,
): Promise<{ sent: number; problem: string | null }> {
  const commit = await rehearse(ports, record, changeset)
  await ports.audit.record('requests-first', record.id, { commit, digest: changeset.digest, approval })
  await ports.gate.consume(changeset, commit)
  if (approval !== null) await ports.approvals.consume(approval, commit)
  await ports.outbox.approve(record, changeset.requests)
  failpoint('requests-first.approved')
  const { sent, problem } = await ports.outbox.replay(record)
  failpoint('requests-first.sent')
  await ports.audit.record('replayed', record.id, { sent, problem, first: true })
  return { sent, problem }
}

const REHEARSED = 'This commit was a rehearsal'

/** A whole commit up to where INTENT would be written: conflicts, rights and space are found before anything leaves. */
async function rehearse(ports: Ports, record: BranchRecord, changeset: Changeset): Promise<string> {
  let reached: string | undefined
  try {
    await ports.committer.commit(record, changeset, {
      beforeIntent: async (commit) => {
        reached = commit
        throw new Error(REHEARSED)
      },
      afterIntent: async () => undefined,
    })
  } catch (error) {
    // Anything else, a commit that could not be withdrawn above all, is not ours to swallow.
    if (reached === undefined || !(error instanceof Error) || error.message !== REHEARSED) throw error
  }
  if (reached === undefined) throw new Error('A rehearsed commit did not ask before its intent')
  return reached
}
