import type { BranchRecord } from '../contract/branch.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import type { FilePart, Outcome, PickRequest } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { outcomeOf } from './outcome.ts'
import type { Ports } from './ports.ts'
import { makeAgain, refuseRequests } from './rebase.ts'
import { fallBack, reviewBranch } from './review.ts'
import type { RunningAgents } from './running.ts'

const NO_CHOICES = { ours: [], theirs: [], drop: [] }

/**
 * A part of a branch as a branch of its own. Single pieces of a file exist in no layer, so they cannot be a part of the old
 * branch's changeset: they are written into a new one, which is compared, judged and approved like any other.
 */
export async function pickFromBranch(
  ports: Ports,
  running: RunningAgents,
  id: string,
  request: PickRequest,
): Promise<Outcome> {
  const since = ports.clock.now()
  const { record, changeset } = await reviewBranch(ports, id)
  try {
    refuseRequests(record, changeset)
    if (changeset.digest !== request.digest)
      throw new PuzzledError('changed-since-review', `Branch ${id} is no longer what was reviewed`, {
        hint: `Look again: puzzlectl review ${id}`,
        data: { reviewed: request.digest, now: changeset.digest },
      })
    const part = request.selection === null ? changeset : ports.differ.select(changeset, request.selection)
    const { open, changes } = await ports.rebaser.plan(record, part, NO_CHOICES)
    const cut = await cutParts(ports, record, changes, request.parts)
    const held = await ports.store.move(id, 'held', 'a part of it was picked')
    if (open.length > 0) return outcomeOf(held, { changeset, conflicts: open })
    const replaced = new Map(cut.map(({ from, ...file }) => [from, file]))
    const plan = {
      changes: changes.map((change) => replaced.get(change)?.change ?? change),
      merged: [...replaced.values()],
    }
    return await makeAgain(ports, running, held, plan, { since, kind: 'pick', reason: `a part of ${id}` })
  } catch (error) {
    if ((await ports.store.read(id)).state === 'reviewing')
      await fallBack(ports, id, 'held', 'no part of it could be picked')
    throw error
  }
}

async function cutParts(
  ports: Ports,
  record: BranchRecord,
  changes: Changeset['changes'],
  parts: readonly FilePart[],
): Promise<readonly { from: Change; change: Change; bytes: Uint8Array }[]> {
  const wanted = parts.map((part) => {
    const change = changes.find(
      ({ base, path }) =>
        base === part.base && Buffer.compare(Buffer.from(path), Buffer.from(part.path)) === 0,
    )
    if (change === undefined)
      throw new PuzzledError('usage', 'A file that is cut is not among the changes that are picked')
    return { change, part }
  })
  const cut = await ports.rebaser.cut(record, wanted)
  return cut.flatMap((file, index) => {
    const from = wanted[index]?.change
    return from === undefined ? [] : [{ from, ...file }]
  })
}
