// pure
import type { Requester } from '../contract/branch.ts'
import type { SpawnOp } from '../contract/spawn.ts'
import { call } from './calls.ts'

/** Who the agent is on the host, and whether the base's owner has to be shifted onto it. */
export interface Identity {
  readonly uid: number
  readonly gid: number
  readonly groups: readonly number[]
  /** Host ids that appear as the agent's (and the other way round) in its view of the base; null: nothing shifted. */
  readonly shift: { readonly uid: number; readonly gid: number } | null
}

/**
 * Agents never run as host root. A root requester's agent becomes the owner of the first base; when that is root too,
 * it becomes an unprivileged user for whom root's files in the base look like their own.
 */
export function agentIdentity(
  requester: Pick<Requester, 'uid' | 'gid' | 'groups'>,
  base: { readonly uid: number; readonly gid: number },
  unprivileged: { readonly uid: number; readonly gid: number },
): Identity {
  if (requester.uid !== 0)
    return { uid: requester.uid, gid: requester.gid, groups: withoutRoot(requester.groups), shift: null }
  if (base.uid !== 0) {
    const gid = base.gid === 0 ? unprivileged.gid : base.gid
    return { uid: base.uid, gid, groups: [], shift: null }
  }
  return { uid: unprivileged.uid, gid: unprivileged.gid, groups: [], shift: { uid: 0, gid: 0 } }
}

/** Root's group owns files all over a system; no agent needs it. */
const withoutRoot = (groups: readonly number[]): number[] => groups.filter((group) => group !== 0)

const groupList = (groups: readonly number[]): Uint8Array => {
  const bytes = new Uint8Array(groups.length * 4)
  const view = new DataView(bytes.buffer)
  for (const [index, group] of groups.entries()) view.setUint32(index * 4, group, true)
  return bytes
}

const setGroups = (groups: readonly number[]): SpawnOp =>
  call(
    groups.length === 0 ? 'leave all groups' : `set groups ${groups.join(', ')}`,
    'setgroups',
    groups.length,
    groups.length === 0 ? null : groupList(groups),
  )

/** Groups first, user last: after the user has changed, groups could no longer be. */
export const identityOps = (identity: Identity): SpawnOp[] => [
  setGroups(identity.groups),
  call(`become group ${identity.gid}`, 'setresgid', identity.gid, identity.gid, identity.gid),
  call(`become user ${identity.uid}`, 'setresuid', identity.uid, identity.uid, identity.uid),
]

/**
 * The calls in between see files with the requester's rights: leaving fsuid 0 takes the file capabilities out of the
 * effective set, coming back returns them. A root requester may see everything, so nothing changes.
 */
export function withRequesterRights(
  requester: Pick<Requester, 'uid' | 'gid' | 'groups'>,
  ops: readonly SpawnOp[],
): SpawnOp[] {
  if (requester.uid === 0 || ops.length === 0) return [...ops]
  return [
    { ...setGroups(requester.groups), name: 'look at files as the requester (groups)' },
    call('look at files as the requester (group)', 'setfsgid', requester.gid),
    call('look at files as the requester (user)', 'setfsuid', requester.uid),
    ...ops,
    call('look at files as root again (user)', 'setfsuid', 0),
    call('look at files as root again (group)', 'setfsgid', 0),
  ]
}
