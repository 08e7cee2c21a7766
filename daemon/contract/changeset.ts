// pure

export type NodeType = 'file' | 'dir' | 'symlink'

export interface XattrEntry {
  name: string
  value: Uint8Array
}

/**
 * What one path is, before or after. Everything that the agent can see and a commit lands. A device, fifo or socket is
 * written as a `file` without `sha256`; the change that has one carries a finding.
 */
export interface NodeState {
  type: NodeType
  /** Permission bits, setuid/setgid/sticky included. */
  mode: number
  uid: number
  gid: number
  /** Bytes of a file's content; 0 for directories, the target's length for symlinks. */
  size: number
  mtimeNs: bigint
  /** Hex, files only. */
  sha256?: string
  /** Target bytes, symlinks only. */
  link?: Uint8Array
  /** ACLs (`system.posix_acl_*`) included; sorted by name. */
  xattrs: readonly XattrEntry[]
}

/** `replace` = the path exists before and after, as different types (file → directory, …). */
export type ChangeKind = 'add' | 'modify' | 'delete' | 'metadata' | 'replace'

export interface ChangeFinding {
  rule: string
  message: string
}

export interface Change {
  /** Index into the branch's bases. */
  base: number
  /** Relative to the base, without a leading slash; never contains `.` or `..` components. */
  path: Uint8Array
  kind: ChangeKind
  old: NodeState | null
  new: NodeState | null
  /**
   * Paths of one changeset that are one inode share a number; absent for a single name. An unchanged file of the base
   * that gained names stands here as `metadata` with equal sides: the commit must link the names to it.
   */
  hardlink?: number | undefined
  /** The base's inode before the change, checked again right before the commit; absent for additions. */
  identity?: BaseIdentity | undefined
  /** What makes this entry impossible to land as it is: devices, fifos, sockets, forged overlay xattrs. */
  findings: readonly ChangeFinding[]
}

export interface BaseIdentity {
  dev: number
  ino: number
  size: number
  mtimeNs: bigint
  ctimeNs: bigint
  nlink: number
}

export interface QueuedRequestSummary {
  id: string
  method: string
  host: string
  path: string
  bytes: number
  class: string
  /** Hex SHA-256 of the request as it will be replayed. */
  sha256: string
}

export interface ChangesetTotals {
  files: number
  bytes: number
  additions: number
  modifications: number
  deletions: number
}

export interface Changeset {
  version: 1
  bases: readonly string[]
  /** In canonical order: by base, then bytewise by path. */
  changes: readonly Change[]
  requests: readonly QueuedRequestSummary[]
  totals: ChangesetTotals
  /** Hex Merkle root (RFC 6962 hashing) over the canonical form of bases, changes and requests. */
  digest: string
}

/**
 * A directory of which nothing but the time of its last change differs: the echo of changes beneath it. It lands with
 * them, so that the tree is exactly what the agent saw, but there is nothing in it to show or to decide about.
 */
export function isEcho({ kind, old, new: now, findings }: Change): boolean {
  if (kind !== 'metadata' || old?.type !== 'dir' || now?.type !== 'dir') return false
  return findings.length === 0 && sameMetadata(old, now)
}

/** Mode, owner and attributes; times are compared apart. */
export function sameMetadata(a: NodeState, b: NodeState): boolean {
  return (
    a.mode === b.mode &&
    a.uid === b.uid &&
    a.gid === b.gid &&
    a.xattrs.length === b.xattrs.length &&
    a.xattrs.every((entry, index) => {
      const other = b.xattrs[index]
      return (
        other !== undefined && entry.name === other.name && Buffer.compare(entry.value, other.value) === 0
      )
    })
  )
}
