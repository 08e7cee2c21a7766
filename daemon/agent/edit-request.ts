import type { Requester } from '../contract/branch.ts'
import type { Outcome, QueueEdit } from '../contract/engine.ts'
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
  const judged = record.digest !== null && (record.state === 'held' || record.state === 'stopped')
  return judged ? reviewAndHold(ports, id, 'a request was edited') : outcomeOf(record)
}
