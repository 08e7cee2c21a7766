import type { Change, NodeState } from '../contract/changeset.ts'
import { type Dir, type Disk, nameOf } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { Sources } from './commit-context.ts'
import type { PlannedOperation, StageNode } from './commit-plan.ts'
import { copyContent } from './copy-content.ts'
import { splitPath } from './journal/format.ts'

/**
 * Builds in a commit's private directory what the operations will rename into the base: content from the layers,
 * everything else from the approved changeset. Content that is not the approved one is refused.
 */
export class Stager {
  readonly #disk: Disk
  readonly #sources: Sources
  /** First staged name of each inode that has several, per directory (links cannot cross filesystems). */
  readonly #links = new Map<string, Buffer>()

  readonly #built: () => void

  constructor(disk: Disk, sources: Sources, built: () => void = () => undefined) {
    this.#disk = disk
    this.#sources = sources
    this.#built = built
  }

  /** Returns the inode of the root of what was built. */
  stage(area: Dir, operation: PlannedOperation): number {
    const slot = nameOf(operation.slot)
    let open: { path: Buffer; dir: Dir } | undefined
    let ino: number | undefined
    const dirOf = (path: Buffer): Dir => {
      if (path.length === 0) return area
      if (open?.path.equals(path)) return open.dir
      if (open !== undefined) this.#disk.close(open.dir)
      // A number that is closed belongs to somebody else: forgotten before anything here can throw.
      open = undefined
      const dir = this.#disk.openDir(area, path)
      open = { path, dir }
      return dir
    }
    try {
      for (const node of operation.tree) {
        const at = splitPath(stagedPath(slot, node.below))
        const made = this.#build(area, dirOf(at.parent), at.name, node, stagedPath(slot, node.below))
        if (node.below.length === 0) ino = made
        this.#built()
      }
      // Children first: filling a directory changes its times, and its own mode may forbid it.
      for (const node of operation.tree.toReversed()) {
        if (node.state.type !== 'dir') continue
        const at = splitPath(stagedPath(slot, node.below))
        this.#disk.setMeta(dirOf(at.parent), at.name, node.state)
      }
    } finally {
      if (open !== undefined) this.#disk.close(open.dir)
    }
    failpoint('commit.staged-one')
    const root = ino ?? this.#disk.stat(area, slot)?.ino
    if (root === undefined) throw new PuzzledError('internal', `Nothing was staged as "${operation.slot}"`)
    return root
  }

  /** Returns the inode where making the node has told it. */
  #build(area: Dir, dir: Dir, name: Buffer, node: StageNode, path: Buffer): number | undefined {
    const { change, state } = node
    if (state.type === 'dir') {
      this.#disk.makeDir(dir, name, 0o700)
      return undefined
    }
    if (state.type === 'symlink') this.#disk.makeLink(dir, name, state.link ?? new Uint8Array(0))
    else if (!this.#linked(area, dir, name, change, path)) return this.#copy(dir, name, change, state)
    this.#disk.setMeta(dir, name, state)
    return undefined
  }

  #linked(area: Dir, dir: Dir, name: Buffer, change: Change, path: Buffer): boolean {
    if (change.hardlink === undefined) return false
    const key = `${area}:${change.base}:${change.hardlink}`
    const first = this.#links.get(key)
    if (first === undefined) {
      this.#links.set(key, path)
      return false
    }
    const at = splitPath(first)
    const from = this.#disk.openDir(area, at.parent)
    try {
      this.#disk.hardLink(from, at.name, dir, name)
    } finally {
      this.#disk.close(from)
    }
    return true
  }

  #copy(dir: Dir, name: Buffer, change: Change, state: NodeState): number {
    return copyContent(this.#disk, change, state, { sources: this.#sources, dir, name, meta: state }).ino
  }
}

const stagedPath = (slot: Buffer, below: Buffer): Buffer =>
  below.length === 0 ? slot : Buffer.concat([slot, Buffer.from('/'), below])
