// pure
import type { Requester } from '../contract/branch.ts'
import type { Change, NodeState } from '../contract/changeset.ts'
import { sameXattrs } from './conflict.ts'

/** What has to hold for the requester to have been able to do this themselves. All of `all`, or all of `or`. */
export interface Demand {
  all: readonly Need[]
  or: readonly Need[] | null
}

export type Need =
  /** Create, replace or remove entries in the parent directory; `sticky` adds the owner rule of sticky directories. */
  | { kind: 'entries'; old: NodeState | null }
  /** Open the existing node for writing. */
  | { kind: 'write' }
  /** Holds or not by the numbers alone. */
  | { kind: 'never'; because: string }

const ACL = 'system.posix_acl_'

/**
 * Must-sentence 7 for one change. `inStaging` is true below a directory that is new itself: there only ownership
 * counts. The numbers are decided here, everything about permission bits and ACLs is the kernel's answer.
 */
export function demandOf(
  change: Change,
  requester: Requester,
  inStaging: boolean,
  groupOfParent: number | null,
): Demand {
  if (requester.uid === 0) return { all: inStaging ? [] : [entryOrNode(change)], or: null }
  const { old, new: state } = change
  if (state === null) return { all: [{ kind: 'entries', old }], or: null }
  const owned = ownershipProblem(requester, old, state, groupOfParent)
  const numbers: Need[] = owned === null ? [] : [{ kind: 'never', because: owned }]
  if (inStaging) return { all: numbers, or: null }
  if (old === null) return { all: [...numbers, { kind: 'entries', old }], or: null }
  if (old.type !== state.type || old.type === 'symlink')
    return { all: [...asReplacement(requester, state, numbers), { kind: 'entries', old }], or: null }
  if (change.kind === 'metadata' || old.type === 'dir')
    return { all: metadataNeeds(requester, old, state, numbers), or: null }
  // A file's content: written in place, or replaced by a file of one's own.
  const inPlace: Need[] = [...metadataNeeds(requester, old, state, numbers), { kind: 'write' }]
  return { all: inPlace, or: [...asReplacement(requester, state, numbers), { kind: 'entries', old }] }
}

const entryOrNode = (change: Change): Need =>
  change.old?.type === change.new?.type && (change.kind === 'metadata' || change.old?.type === 'dir')
    ? { kind: 'write' }
    : { kind: 'entries', old: change.old }

const asReplacement = (requester: Requester, state: NodeState, numbers: readonly Need[]): Need[] =>
  state.uid === requester.uid
    ? [...numbers]
    : [...numbers, { kind: 'never', because: 'its owner would be another user' }]

function metadataNeeds(
  requester: Requester,
  old: NodeState,
  state: NodeState,
  numbers: readonly Need[],
): Need[] {
  if (old.uid === requester.uid) return [...numbers]
  const ownersOnly =
    old.mode !== state.mode ||
    old.gid !== state.gid ||
    old.uid !== state.uid ||
    !sameXattrs(aclOf(old), aclOf(state))
  return ownersOnly
    ? [...numbers, { kind: 'never', because: 'only its owner may change its mode, group or ACL' }]
    : [...numbers, { kind: 'write' }]
}

const aclOf = (state: NodeState): NodeState['xattrs'] =>
  state.xattrs.filter(
    ({ name }) => name.startsWith(ACL) || name.startsWith('security.') || name.startsWith('trusted.'),
  )

function ownershipProblem(
  requester: Requester,
  old: NodeState | null,
  state: NodeState,
  groupOfParent: number | null,
): string | null {
  if (state.uid !== requester.uid && state.uid !== old?.uid)
    return `its owner would be uid ${state.uid}, which only root could have set`
  const groups = [requester.gid, ...requester.groups, old?.gid, groupOfParent]
  return groups.includes(state.gid)
    ? null
    : `its group would be gid ${state.gid}, of which the requester is no member`
}

/** In a sticky directory only the owner of the entry or of the directory may replace or remove it. */
export const stickyAllows = (
  requester: Requester,
  parent: { mode: number; uid: number },
  old: { uid: number } | null,
): boolean =>
  requester.uid === 0 ||
  old === null ||
  (parent.mode & 0o1000) === 0 ||
  old.uid === requester.uid ||
  parent.uid === requester.uid
