import type { BranchRecord } from '../contract/branch.ts'
import { isTerminal } from '../contract/states.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Ports } from './ports.ts'
import type { RunningAgents } from './running.ts'

/** Ends what runs in the branch and moves its layers to the trash. The base was never touched. */
export async function discardBranch(ports: Ports, running: RunningAgents, id: string): Promise<BranchRecord> {
  const record = await ports.store.read(id)
  if (isTerminal(record.state))
    throw new PuzzledError('wrong-state', `Branch ${id} is ${record.state} already`, {
      ...(record.commit === null ? {} : { hint: `To undo its commit: puzzlectl revert ${record.commit.id}` }),
    })
  if (record.state === 'committing' || record.state === 'commit-stuck')
    throw new PuzzledError('wrong-state', `Branch ${id} is in the middle of a commit`, {
      hint: 'Its undo records are needed; see docs/operations.md, "A commit is stuck".',
    })
  await ports.launcher.sweep(id)
  try {
    await running.ended(id)
    return await toTrash(ports, id, record)
  } catch (error) {
    // An agent that had changed nothing: with its end the branch was discarded anyway.
    if (error instanceof PuzzledError && error.code === 'branch-unknown')
      return { ...record, state: 'discarded' }
    throw error
  }
}

async function toTrash(ports: Ports, id: string, record: BranchRecord): Promise<BranchRecord> {
  const { state } = await ports.store.read(id)
  if (state === 'running' || state === 'frozen')
    await ports.store.move(id, 'stopped', 'ended to be discarded')
  // From "discarding" too: an earlier attempt may have been stopped by a full disk.
  const discarding = await ports.store.move(id, 'discarding', 'discarded')
  await ports.audit.record('discard', id, { from: record.state })
  await ports.store.discard(id)
  return { ...discarding, state: 'discarded' }
}
