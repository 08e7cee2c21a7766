// pure
import type { NodeState } from '../contract/changeset.ts'

const SETUID = 0o4000
const SETGID = 0o2000

export interface Stripped {
  path: string
  message: string
}

export const sgidOf = (mode: number): boolean => (mode & SETGID) !== 0

/**
 * What gives a file the rights of its owner or of the kernel's capabilities does not land, unless it was there before
 * and the content is the same. A directory may keep setgid where it inherits it, as on a shared tree.
 */
export function strip(
  old: NodeState | null,
  state: NodeState,
  inheritsGroup: boolean,
): { state: NodeState; lost: string[] } {
  const lost: string[] = []
  const kept = keptBits(old, state, inheritsGroup)
  const gone = state.mode & (SETUID | SETGID) & ~kept
  if (gone & SETUID) lost.push('the setuid bit was removed')
  if (gone & SETGID) lost.push('the setgid bit was removed')
  const xattrs = state.xattrs.filter((xattr) => {
    if (xattr.name !== 'security.capability' || (sameContent(old, state) && hasSame(old, xattr))) return true
    lost.push('file capabilities were removed')
    return false
  })
  return lost.length === 0 ? { state, lost } : { state: { ...state, mode: state.mode & ~gone, xattrs }, lost }
}

function keptBits(old: NodeState | null, state: NodeState, inheritsGroup: boolean): number {
  if (state.type === 'dir') return (old?.type === 'dir' ? old.mode : 0) | (inheritsGroup ? SETGID : 0)
  return sameContent(old, state) && old?.uid === state.uid && old.gid === state.gid ? old.mode : 0
}

const sameContent = (old: NodeState | null, state: NodeState): boolean =>
  old?.type === state.type && old.sha256 !== undefined && old.sha256 === state.sha256

const hasSame = (old: NodeState | null, xattr: { name: string; value: Uint8Array }): boolean =>
  old?.xattrs.some(
    ({ name, value }) => name === xattr.name && Buffer.compare(Buffer.from(value), xattr.value) === 0,
  ) ?? false

/**
 * Extended attributes that a commit carries: those of the user and of root, ACLs and capabilities. Marks of overlay and
 * labels of security modules are made by the kernel where the file lands.
 */
export const isLanded = (name: string): boolean =>
  !/^(trusted|user)\.overlay\./.test(name) &&
  /^(user\.|trusted\.|system\.posix_acl_|security\.capability$)/.test(name)
