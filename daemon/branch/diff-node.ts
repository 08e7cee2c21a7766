import type { BaseIdentity, ChangeFinding, NodeState, XattrEntry } from '../contract/changeset.ts'
import { S } from '../kernel/paths.ts'
import type { Stat } from '../kernel/statx.ts'
import { getXattr, listXattrs, type XattrTarget } from '../kernel/xattr.ts'

const NO_XATTRS: readonly XattrEntry[] = []

/** What overlayfs itself writes and a diff knows the meaning of; anything else with its prefix was forged. */
const OWN_MARKS = new Set(['opaque', 'impure', 'origin', 'uuid'])

export interface Attributes {
  /** What a commit carries, sorted by name. */
  xattrs: readonly XattrEntry[]
  opaque: boolean
  findings: ChangeFinding[]
}

const NO_ATTRIBUTES: Attributes = { xattrs: NO_XATTRS, opaque: false, findings: [] }

/**
 * Splits the attributes of a node of an upper layer into those of the file and those of overlayfs. With
 * `marks = 'trusted.overlay.'` an agent cannot write overlay's own; in a layer, `user.overlay.*` is then a forgery.
 */
export function readAttributes(target: XattrTarget, marks: string): Attributes {
  const names = listXattrs(target)
  if (names.length === 0) return NO_ATTRIBUTES
  const found: Attributes = { xattrs: [], opaque: false, findings: [] }
  const xattrs: XattrEntry[] = []
  for (const name of names) {
    const mark = /^(?:trusted|user)\.overlay\./.exec(name)
    if (mark !== null) readMark(target, name, mark[0] === marks ? name.slice(marks.length) : '', found)
    else if (isCarried(name)) {
      const value = getXattr(target, name)
      if (value !== undefined) xattrs.push({ name, value })
    }
  }
  return { ...found, xattrs }
}

function readMark(target: XattrTarget, name: string, mark: string, found: Attributes): void {
  const value = mark === 'opaque' ? getXattr(target, name)?.toString('latin1') : undefined
  if (mark === 'opaque' && value === 'y') found.opaque = true
  else if (mark === 'opaque' || !OWN_MARKS.has(mark))
    found.findings.push({
      rule: 'overlay-xattr',
      message: `it carries ${name}${value === undefined ? '' : `=${JSON.stringify(value)}`}, which no layer of ours has`,
    })
}

/** The attributes of a node of the base, where overlay's marks mean nothing. */
export function readBaseXattrs(target: XattrTarget): readonly XattrEntry[] {
  const xattrs: XattrEntry[] = []
  for (const name of listXattrs(target)) {
    const value = isCarried(name) ? getXattr(target, name) : undefined
    if (value !== undefined) xattrs.push({ name, value })
  }
  return xattrs.length === 0 ? NO_XATTRS : xattrs
}

/**
 * Labels and measurements (`security.selinux`, `security.ima`, …) are the host's: the kernel or its policy writes them
 * when a file lands. Capabilities and ACLs are the file's.
 */
const isCarried = (name: string): boolean =>
  !/^(trusted|user)\.overlay\./.test(name) &&
  /^(user\.|trusted\.|system\.posix_acl_|security\.capability$)/.test(name)

export type Kind = 'file' | 'dir' | 'symlink' | 'whiteout' | 'special'

export function kindOf(stat: Stat): Kind {
  switch (stat.mode & S.IFMT) {
    case S.IFREG:
      return 'file'
    case S.IFDIR:
      return 'dir'
    case S.IFLNK:
      return 'symlink'
    case S.IFCHR:
      return stat.rdevMajor === 0 && stat.rdevMinor === 0 ? 'whiteout' : 'special'
    default:
      return 'special'
  }
}

const SPECIAL: Readonly<Record<number, string>> = {
  [S.IFSOCK]: 'a socket',
  [S.IFBLK]: 'a block device',
  [S.IFCHR]: 'a character device',
  [S.IFIFO]: 'a fifo',
}

export const specialFinding = (stat: Stat, where: string): ChangeFinding => ({
  rule: 'special-file',
  message: `it is ${SPECIAL[stat.mode & S.IFMT] ?? 'of an unknown type'} ${where}`,
})

export function stateOf(stat: Stat, xattrs: readonly XattrEntry[]): NodeState {
  const kind = kindOf(stat)
  return {
    type: kind === 'dir' || kind === 'symlink' ? kind : 'file',
    mode: stat.mode & 0o7777,
    uid: stat.uid,
    gid: stat.gid,
    size: kind === 'file' || kind === 'symlink' ? stat.size : 0,
    mtimeNs: stat.mtimeNs,
    xattrs,
  }
}

export const identityOf = (stat: Stat): BaseIdentity => ({
  dev: stat.dev,
  ino: stat.ino,
  size: stat.size,
  mtimeNs: stat.mtimeNs,
  ctimeNs: stat.ctimeNs,
  nlink: stat.nlink,
})
