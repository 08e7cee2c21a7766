import type { BaseIdentity, Change, ChangeFinding, NodeState } from '../contract/changeset.ts'
import { sameMetadata } from '../contract/changeset.ts'
import { close, O, openat, readlinkat, withFd } from '../kernel/paths.ts'
import { type Stat, statAt, statFd } from '../kernel/statx.ts'
import { errnoOf } from '../lib/errors.ts'
import { compareContent, sha256 } from './diff-content.ts'
import {
  identityOf,
  type Kind,
  kindOf,
  readAttributes,
  readBaseXattrs,
  specialFinding,
  stateOf,
} from './diff-node.ts'
import type { DiffReceiver } from './diff-sink.ts'

/** A name below an open directory, and its path in the base. */
export interface Named {
  dir: number
  name: Buffer
  path: Buffer
}

/** The same name in the base. */
export interface Below {
  dir: number
  stat: Stat
}

/**
 * A change as it was reviewed, where whoever runs the walk checks the digest of the new content itself before it relies
 * on it: then content need not be read for the walk. Everything else of the change is still looked at.
 */
export type Promised = (base: number, path: Uint8Array) => Change | undefined

const sameIdentity = (a: BaseIdentity | undefined, b: BaseIdentity): boolean =>
  a !== undefined &&
  a.dev === b.dev &&
  a.ino === b.ino &&
  a.size === b.size &&
  a.mtimeNs === b.mtimeNs &&
  a.ctimeNs === b.ctimeNs

/**
 * The old side of a file as it was reviewed, where the base's inode has not changed since: no content, owner, mode or
 * attribute of a file changes without its ctime, which nobody can set.
 */
function promisedFile(promised: Change | undefined, stat: Stat): NodeState | undefined {
  const old = promised?.old
  if (old?.type !== 'file' || old.sha256 === undefined || old.size !== stat.size) return undefined
  if (!sameIdentity(promised?.identity, identityOf(stat))) return undefined
  return { ...stateOf(stat, old.xattrs), sha256: old.sha256 }
}

const READ = O.RDONLY | O.NONBLOCK
const NO_FINDINGS: readonly ChangeFinding[] = []

/** Compares what is not a directory, and describes what the base holds. */
export class DiffFiles {
  readonly #base: number
  readonly #sink: DiffReceiver
  readonly #marks: string
  readonly #promised: Promised

  constructor(base: number, sink: DiffReceiver, marks: string, promised: Promised) {
    this.#base = base
    this.#sink = sink
    this.#marks = marks
    this.#promised = promised
  }

  /** Whether the name came, went or changed its type. A name that vanished meanwhile is no change. */
  compare(at: Named, kind: Kind, below: Below | undefined): boolean {
    if (kind === 'symlink') return this.#symlink(at, below)
    if (kind !== 'file') return this.#special(at, below)
    const fd = openIfThere(at)
    return fd !== undefined && withFd(fd, () => this.#file(at, fd, below))
  }

  #file(at: Named, fd: number, below: Below | undefined): boolean {
    const stat = statFd(fd)
    if (kindOf(stat) !== 'file') return this.#special(at, below)
    const attributes = readAttributes(fd, this.#marks)
    const fresh = stateOf(stat, attributes.xattrs)
    const inode = stat.nlink > 1 ? `${stat.dev}:${stat.ino}` : undefined
    if (below !== undefined && kindOf(below.stat) === 'file') {
      const change = this.#pair(at, { fd, links: stat.nlink }, fresh, below, attributes.findings)
      this.#put(change, inode)
      return false
    }
    const promised = this.#promised(this.#base, at.path)?.new
    const known = promised?.type === 'file' && promised.size === fresh.size ? promised.sha256 : undefined
    fresh.sha256 = known ?? sha256(fd, fresh.size)
    this.#put({ change: this.#changeOf(at, below, fresh, attributes.findings), unchanged: false }, inode)
    return true
  }

  /** Two regular files: type and size are cheap, bytes are last and always. */
  #pair(
    at: Named,
    { fd, links }: { fd: number; links: number },
    fresh: NodeState,
    { dir, stat }: Below,
    findings: readonly ChangeFinding[],
  ): { change: Change; unchanged: boolean } {
    const identity = identityOf(stat)
    const common = { base: this.#base, path: at.path, new: fresh, identity, findings }
    const promised = this.#promisedPair(at, stat, fresh)
    if (promised !== undefined) {
      fresh.sha256 = promised.after
      return { change: { ...common, kind: 'modify', old: promised.old }, unchanged: false }
    }
    // Looked at before it is opened: should another file be read, the identity is not that one's, and the commit sees it.
    return withFd(openat(dir, at.name, READ), (oldFd) => {
      const old = stateOf(stat, readBaseXattrs(oldFd))
      const content = compareContent({ fd: oldFd, size: old.size }, { fd, size: fresh.size })
      const same = content.equal && sameMetadata(old, fresh) && old.mtimeNs === fresh.mtimeNs
      const unchanged = same && findings.length === 0
      if (!content.equal) {
        old.sha256 = content.before
        fresh.sha256 = content.after
      } else if (!unchanged || links > 1) fresh.sha256 = old.sha256 = content.sha256()
      const kind = content.equal ? 'metadata' : 'modify'
      return { change: { ...common, kind, old }, unchanged }
    })
  }

  /** Of a base's file that nobody has touched since, and a layer's whose content somebody checks when it is used. */
  #promisedPair(at: Named, stat: Stat, fresh: NodeState): { old: NodeState; after: string } | undefined {
    const promised = this.#promised(this.#base, at.path)
    const after = promised?.new
    if (promised?.kind !== 'modify' || after?.sha256 === undefined || after.size !== fresh.size)
      return undefined
    const old = promisedFile(promised, stat)
    return old === undefined ? undefined : { old, after: after.sha256 }
  }

  #put({ change, unchanged }: { change: Change; unchanged: boolean }, inode: string | undefined): void {
    if (inode !== undefined) this.#sink.addLinked({ change, inode, unchanged })
    else if (!unchanged) this.#sink.add(change)
  }

  #symlink(at: Named, below: Below | undefined): boolean {
    const stat = statAt(at.dir, at.name)
    const attributes = readAttributes({ dir: at.dir, name: at.name }, this.#marks)
    const fresh: NodeState = { ...stateOf(stat, attributes.xattrs), link: readlinkat(at.dir, at.name) }
    const change = this.#changeOf(at, below, fresh, attributes.findings)
    const { old } = change
    if (old?.type !== 'symlink') {
      this.#sink.add(change)
      return true
    }
    const retargeted = Buffer.compare(old.link ?? Buffer.alloc(0), fresh.link ?? Buffer.alloc(0)) !== 0
    const kind = retargeted ? 'modify' : 'metadata'
    const same = !retargeted && sameMetadata(old, fresh) && old.mtimeNs === fresh.mtimeNs
    if (!same || change.findings.length > 0) this.#sink.add({ ...change, kind })
    return false
  }

  /** Devices, fifos and sockets block; one of the base that was only copied up is no change. */
  #special(at: Named, below: Below | undefined): boolean {
    const stat = statAt(at.dir, at.name)
    const attributes = readAttributes({ dir: at.dir, name: at.name }, this.#marks)
    const fresh = stateOf(stat, attributes.xattrs)
    if (below !== undefined && sameSpecial(below.stat, stat)) {
      const old = stateOf(below.stat, readBaseXattrs({ dir: below.dir, name: at.name }))
      if (sameMetadata(old, fresh) && attributes.findings.length === 0) return false
    }
    const findings = [...attributes.findings, specialFinding(stat, 'and cannot be committed')]
    this.#sink.add(this.#changeOf(at, below, fresh, findings))
    return true
  }

  #changeOf(
    at: Named,
    below: Below | undefined,
    fresh: NodeState,
    findings: readonly ChangeFinding[],
  ): Change {
    const change = { base: this.#base, path: at.path, new: fresh }
    if (below === undefined) return { ...change, kind: 'add', old: null, findings }
    return { ...change, kind: 'replace', ...this.before(at, below, findings) }
  }

  /** The old side of a change, whatever it is. */
  before(
    at: Pick<Named, 'name' | 'path'>,
    below: Below,
    findings: readonly ChangeFinding[] = NO_FINDINGS,
  ): Pick<Change, 'old' | 'identity' | 'findings'> {
    const { dir, stat } = below
    const identity = identityOf(stat)
    switch (kindOf(stat)) {
      case 'file': {
        const promised = promisedFile(this.#promised(this.#base, at.path), stat)
        if (promised !== undefined) return { old: promised, identity, findings }
        return withFd(openat(dir, at.name, READ), (fd) => {
          const old = stateOf(stat, readBaseXattrs(fd))
          old.sha256 = sha256(fd, stat.size)
          return { old, identity, findings }
        })
      }
      case 'symlink': {
        const old = stateOf(stat, readBaseXattrs({ dir, name: at.name }))
        old.link = readlinkat(dir, at.name)
        return { old, identity, findings }
      }
      case 'dir':
        return { old: stateOf(stat, readBaseXattrs({ dir, name: at.name })), identity, findings }
      default:
        return {
          old: stateOf(stat, []),
          identity,
          findings: [...findings, specialFinding(stat, 'in the base and cannot be replaced')],
        }
    }
  }
}

const sameSpecial = (a: Stat, b: Stat): boolean =>
  (a.mode & 0o170000) === (b.mode & 0o170000) && a.rdevMajor === b.rdevMajor && a.rdevMinor === b.rdevMinor

/** In a branch that still runs, a name may go or change its type between listing and opening. */
function openIfThere(at: Named): number | undefined {
  try {
    return openat(at.dir, at.name, READ)
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENXIO'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}

export const closeAll = (fds: readonly number[]): void => {
  for (const fd of fds) close(fd)
}
