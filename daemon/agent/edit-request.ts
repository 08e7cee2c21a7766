import type { BranchRecord, Requester } from '../contract/branch.ts'
import type { Outcome, QueueAction, QueueEdit, QueueResult } from '../contract/engine.ts'
import type { BranchState } from '../contract/states.ts'
import { PuzzledError } from '../lib/errors.ts'
import { outcomeOf } from './outcome.ts'
import type { Ports } from './ports.ts'
import { reviewAndHold } from './review.ts'

/** Whatever is decided about a branch in another state is decided about the requests as they were. */
const EDITABLE: ReadonlySet<BranchState> = new Set(['ready', 'running', 'frozen', 'stopped', 'held'])

/**
 * Changes a request that waits. A branch that was judged is judged again at once: its digest is another one, so no
 * approval that exists fits it any more.
 */
export async function editRequest(
  ports: Ports,
  id: string,
  asked: { request: string; edit: QueueEdit; why: string; by: Requester },
): Promise<Outcome> {
  const { request, edit, why, by } = asked
  const record = await ports.store.read(id)
  if (!EDITABLE.has(record.state))
    throw new PuzzledError(
      'wrong-state',
      `The requests of branch ${id} can no longer be changed: it is ${record.state}`,
    )
  await ports.audit.record('queue-edit', id, { request, why, by: by.uid, parts: Object.keys(edit) })
  await ports.outbox.edit(record, request, edit)
  return isJudged(record) ? reviewAndHold(ports, id, 'a request was edited') : outcomeOf(record)
}

/** What a person decides about one request. Without one that was dropped the branch is another than was judged. */
export async function decideRequest(
  ports: Ports,
  id: string,
  asked: { request: string; action: QueueAction; why: string; by: Requester },
): Promise<QueueResult> {
  const { request, action, why, by } = asked
  await ports.audit.record(`queue-${action}`, id, { request, why, by: by.uid })
  const record = await ports.store.read(id)
  const result = await ports.outbox.act(record, request, action, why)
  if (action === 'drop' && record.state === 'held' && isJudged(record))
    await reviewAndHold(ports, id, 'a request was dropped')
  return result
}

const isJudged = ({ digest, state }: BranchRecord): boolean =>
  digest !== null && (state === 'held' || state === 'stopped')
