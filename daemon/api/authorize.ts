import type { BusAction } from '../contract/bus.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Credentials } from './credentials.ts'
import type { PolkitAnswer } from './polkit.ts'

export interface Groups {
  /** gid of `puzzled`: may run and manage own branches. Null when there is no such group. */
  users: number | null
  /** gid of `puzzled-reviewers`: may see all branches and decide about them. */
  reviewers: number | null
}

export interface Question {
  action: BusAction
  /** uid that the branch belongs to; null for calls that are about no branch. */
  owner: number | null
}

/** Why any of them is refused. */
export const INSIDE = 'A process inside a branch cannot use the daemon'

/** A process inside a branch may do nothing at all, whoever its uid is. */
export function refuseInside({ insideBranch }: Credentials): void {
  if (insideBranch) throw denied(INSIDE)
}

/** Whether this caller may know that a branch of this owner exists. */
export const maySee = (credentials: Credentials, groups: Groups, owner: number): boolean =>
  !credentials.insideBranch &&
  (credentials.uid === 0 || ownershipAllows(credentials, groups, { action: 'look', owner }))

/** Asks polkit about an action of this caller; null when no polkit runs. */
export type AskPolkit = (action: BusAction) => Promise<PolkitAnswer | null>

/**
 * Whether this caller may do this. A process inside a branch may do nothing at all, whoever its uid is: that is the
 * agent trying to reach the one that judges it.
 */
export async function authorize(
  credentials: Credentials,
  groups: Groups,
  question: Question,
  askPolkit: AskPolkit,
): Promise<void> {
  const { action } = question
  refuseInside(credentials)
  if (credentials.uid === 0) return
  if (!ownershipAllows(credentials, groups, question)) throw denied('The branch belongs to somebody else')
  // Looking at what is one's own needs no further right.
  if (action === 'look') return
  const answer = await askPolkit(action)
  if (answer === 'challenge')
    throw new PuzzledError('access-denied', `uid ${credentials.uid} has to prove who they are to ${action}`, {
      hint: 'Run it where polkit can ask for a password: at a terminal, with pkttyagent running.',
    })
  const allowed = answer === null ? groupAllows(credentials, groups, action) : answer === 'allowed'
  if (!allowed) throw denied(`uid ${credentials.uid} may not ${action}`, answer === null ? action : undefined)
}

function ownershipAllows(credentials: Credentials, groups: Groups, { action, owner }: Question): boolean {
  if (owner === null || owner === credentials.uid) return true
  return isMember(credentials, groups.reviewers) && (action === 'look' || action === 'approve')
}

function groupAllows(credentials: Credentials, groups: Groups, action: BusAction): boolean {
  if (action === 'manage') return isMember(credentials, groups.users)
  return action === 'approve' && isMember(credentials, groups.reviewers)
}

const isMember = ({ gid, groups }: Credentials, group: number | null): boolean =>
  group !== null && (gid === group || groups.includes(group))

const denied = (message: string, action?: BusAction): PuzzledError => {
  const group = action === 'manage' ? 'puzzled' : action === 'approve' ? 'puzzled-reviewers' : null
  return new PuzzledError('access-denied', message, {
    ...(group === null
      ? {}
      : { hint: `Without polkit, members of group ${group} may: usermod -aG ${group} USER` }),
  })
}
