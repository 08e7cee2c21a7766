import type { Outcome } from '../contract/engine.ts'
import { settle } from './commit.ts'
import { discardBranch } from './discard.ts'
import { isEmpty, outcomeOf } from './outcome.ts'
import type { Ports } from './ports.ts'
import { changesetOf, reviewBranch } from './review.ts'
import type { RunningAgents } from './running.ts'

/** Waits for the agent, then does what its `afterwards` asks for. */
export async function finishBranch(ports: Ports, running: RunningAgents, id: string): Promise<Outcome> {
  await running.ended(id)
  const record = await ports.store.read(id)
  if (record.state === 'held') return outcomeOf(record, { changeset: await changesetOf(ports, record) })
  if (record.state !== 'stopped') return outcomeOf(record)
  if (record.afterwards === 'discard') return outcomeOf(await discardBranch(ports, running, id))
  const reviewed = await reviewBranch(ports, id)
  if (record.afterwards === 'gate' || isEmpty(reviewed.changeset)) return settle(ports, reviewed)
  const held = await ports.store.move(id, 'held', 'held as asked')
  await ports.approvals.request(held, reviewed.changeset, reviewed.verdict)
  return outcomeOf(held, { changeset: reviewed.changeset })
}

/**
 * Whether to finish it when nobody waits for it. A branch that changed nothing stays until somebody has asked how its
 * agent ended, or looked at what it wrote.
 */
export async function isWorthFinishing(ports: Ports, id: string): Promise<boolean> {
  const record = await ports.store.read(id)
  if (record.state !== 'stopped') return false
  return record.afterwards === 'discard' || !isEmpty(await changesetOf(ports, record))
}
