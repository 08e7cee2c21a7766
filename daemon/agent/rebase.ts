import type { BranchRecord } from '../contract/branch.ts'
import { encodePath } from '../contract/bytes.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { Outcome, RebaseChoices } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { discardBranch } from './discard.ts'
import { makeBranch } from './fork.ts'
import { outcomeOf } from './outcome.ts'
import type { Ports, Reapplied } from './ports.ts'
import { fallBack, reviewBranch } from './review.ts'
import type { RunningAgents } from './running.ts'

/**
 * Makes a new branch over the present base and does there what the old branch did, where that does not collide or the
 * choices say whose side counts. With an undecided collision nothing is made and all of them are told. The old branch
 * stays as it is; the new one is held, because nobody has seen it yet.
 */
export async function rebaseBranch(
  ports: Ports,
  running: RunningAgents,
  id: string,
  choices: RebaseChoices,
): Promise<Outcome> {
  // The new branch begins now, before the base is compared: whoever changes the base from here on is a conflict for it.
  const since = ports.clock.now()
  const { record, changeset } = await reviewBranch(ports, id)
  try {
    refuseRequests(record, changeset)
    const { open, ...plan } = await ports.rebaser.plan(record, changeset, choices)
    const held = await ports.store.move(id, 'held', 'the base changed since the fork')
    if (open.length > 0) return outcomeOf(held, { changeset, conflicts: open })
    if (plan.changes.length === 0)
      throw new PuzzledError('usage', `Nothing of branch ${id} is left to do again`, {
        hint: `To give it up: puzzlectl discard ${id}`,
      })
    return await makeAgain(ports, running, held, plan, {
      since,
      kind: 'rebase',
      reason: `rebased from ${id}`,
    })
  } catch (error) {
    if ((await ports.store.read(id)).state === 'reviewing')
      await fallBack(ports, id, 'held', 'it could not be rebased')
    throw error
  }
}

/** Requests wait under the branch that made them and were answered for it: they cannot change hands. */
export function refuseRequests({ id }: BranchRecord, { requests }: Changeset): void {
  if (requests.length === 0) return
  throw new PuzzledError('wrong-state', `Branch ${id} has ${requests.length} queued requests`, {
    hint: `They cannot move to another branch. Drop them first: puzzlectl queue ls ${id}`,
  })
}

/** A new, held branch with changes of an old one, judged as what it is. */
export async function makeAgain(
  ports: Ports,
  running: RunningAgents,
  old: BranchRecord,
  plan: Reapplied,
  { since, kind, reason }: { since: Date; kind: 'rebase' | 'pick'; reason: string },
): Promise<Outcome> {
  const { requester, command, cwd, afterwards, profile, exit } = old
  const bases = old.bases.map(({ path }) => path)
  const made = await makeBranch(
    ports,
    { bases, requester, command, cwd, afterwards, name: null },
    profile,
    // How the agent ended is part of what its work is judged by.
    { since, parent: old.id, exit, fill: (fresh) => reapply(ports, old, fresh, plan) },
  )
  const merged = plan.merged.flatMap(mergedWarning)
  try {
    await ports.audit.record(kind, made.id, {
      from: old.id,
      changes: plan.changes.length,
      merged: merged.map(({ path }) => path),
    })
    const { changeset, verdict } = await reviewBranch(ports, made.id)
    const held = await ports.store.move(made.id, 'held', reason)
    if (verdict.kind === 'hold') await ports.approvals.request(held, changeset, verdict)
    return outcomeOf(held, { changeset, warnings: merged })
  } catch (error) {
    await discardBranch(ports, running, made.id)
    throw error
  }
}

/** While the new branch is still being prepared: one that was filled halfway never comes to be. */
async function reapply(ports: Ports, old: BranchRecord, fresh: BranchRecord, plan: Reapplied): Promise<void> {
  const same = old.bases.map(({ path }) => path).join('\0') === fresh.bases.map(({ path }) => path).join('\0')
  if (!same)
    throw new PuzzledError(
      'base-invalid',
      'Other mounts stand below the base than when the branch was forked',
    )
  await ports.rebaser.reapply(old, fresh, plan)
}

function mergedWarning({
  change,
  commit,
}: Reapplied['merged'][number]): readonly Outcome['warnings'][number][] {
  if (commit === undefined) return []
  const message = `both sides changed it and their lines were merged; commit ${commit} had kept what both began from`
  return [{ path: encodePath(change.path).path, message }]
}
