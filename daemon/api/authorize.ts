import type { BusAction } from '../contract/bus.ts'
import { type BusConnection, BusError } from '../lib/bus-connection.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Credentials } from './credentials.ts'

/** Answers of polkit that mean that it does not run; everything else it says is final. */
const NO_POLKIT = new Set([
  'org.freedesktop.DBus.Error.ServiceUnknown',
  'org.freedesktop.DBus.Error.NameHasNoOwner',
  'org.freedesktop.DBus.Error.Spawn.ServiceNotFound',
])

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

/** A process inside a branch may do nothing at all, whoever its uid is. */
export function refuseInside({ insideBranch }: Credentials): void {
  if (insideBranch) throw denied('A process inside a branch cannot use the daemon')
}

/** Whether this caller may know that a branch of this owner exists. */
export const maySee = (credentials: Credentials, groups: Groups, owner: number): boolean =>
  !credentials.insideBranch &&
  (credentials.uid === 0 || ownershipAllows(credentials, groups, { action: 'look', owner }))

/**
 * Whether this caller may do this. A process inside a branch may do nothing at all, whoever its uid is: that is the
 * agent trying to reach the one that judges it.
 */
export async function authorize(
  connection: BusConnection,
  caller: { name: string; credentials: Credentials },
  groups: Groups,
  question: Question,
): Promise<void> {
  const { credentials } = caller
  refuseInside(credentials)
  if (credentials.uid === 0) return
  if (!ownershipAllows(credentials, groups, question)) throw denied('The branch belongs to somebody else')
  // Looking at what is one's own needs no further right.
  if (question.action === 'look') return
  const polkit = await askPolkit(connection, caller.name, question.action)
  const allowed = polkit ?? groupAllows(credentials, groups, question.action)
  if (!allowed) throw denied(`uid ${credentials.uid} may not ${question.action}`, question.action)
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

/** Null when no polkit runs. Interaction is allowed: a person at a terminal may be asked for a password. */
async function askPolkit(
  connection: BusConnection,
  name: string,
  action: BusAction,
): Promise<boolean | null> {
  try {
    const [result] = await connection.call({
      destination: 'org.freedesktop.PolicyKit1',
      path: '/org/freedesktop/PolicyKit1/Authority',
      interface: 'org.freedesktop.PolicyKit1.Authority',
      member: 'CheckAuthorization',
      signature: '(sa{sv})sa{ss}us',
      body: [['system-bus-name', [['name', ['s', name]]]], `org.puzzled1.${action}`, [], 1, ''],
    })
    return (result as [boolean])[0] === true
  } catch (error) {
    if (error instanceof BusError && NO_POLKIT.has(error.busName)) return null
    throw error
  }
}

const denied = (message: string, action?: BusAction): PuzzledError => {
  const group = action === 'manage' ? 'puzzled' : action === 'approve' ? 'puzzled-reviewers' : null
  return new PuzzledError('access-denied', message, {
    ...(group === null
      ? {}
      : { hint: `Without polkit, members of group ${group} may: usermod -aG ${group} USER` }),
  })
}
