import type { Change, NodeState } from '../contract/changeset.ts'
import { type Dir, type Disk, NO_NAME } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { Sources } from './commit-context.ts'
import { copyContent } from './copy-content.ts'
import { splitPath } from './journal/format.ts'

/**
 * Does changes again in a tree, as an agent would: the overlay below makes whiteouts and opaque directories of it.
 * Content that is not what the changeset names is refused.
 */
export class Reapplier {
  readonly #disk: Disk
  readonly #sources: Sources
  readonly #roots: readonly Dir[]
  /** Content that is in no layer. */
  readonly #merged: ReadonlyMap<Change, Uint8Array>
  /** The name that the others of one inode are linked to. */
  readonly #links = new Map<number, Change>()

  constructor(
    disk: Disk,
    sources: Sources,
    roots: readonly Dir[],
    merged: ReadonlyMap<Change, Uint8Array> = new Map(),
  ) {
    this.#disk = disk
    this.#sources = sources
    this.#roots = roots
    this.#merged = merged
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes.toReversed())
      if (change.old !== null && makesRoom(change)) this.#remove(change, change.old)
    // A file of the base that gained names is there already; the new names are linked to it, also those that were another
    // file with the same content.
    for (const change of changes)
      if (change.hardlink !== undefined && change.kind === 'metadata' && !this.#links.has(change.hardlink))
        this.#links.set(change.hardlink, change)
    for (const change of changes) if (change.new !== null) this.#make(change, change.new)
    // Children first: filling a directory changes its times, and its own mode may forbid it.
    for (const change of changes.toReversed())
      if (change.new?.type === 'dir') this.#at(change, (dir, name) => this.#meta(dir, name, change))
  }

  #remove(change: Change, old: NodeState): void {
    this.#at(change, (dir, name) => {
      if (old.type === 'dir') this.#disk.removeDir(dir, name)
      else this.#disk.unlink(dir, name)
    })
  }

  #make(change: Change, state: NodeState): void {
    this.#at(change, (dir, name) => {
      if (state.type === 'dir') {
        if (change.old?.type !== 'dir') this.#disk.makeDir(dir, name, 0o700)
        return
      }
      if (this.#joins(change)) this.#disk.unlink(dir, name)
      if (change.kind !== 'metadata' || this.#joins(change)) this.#fill(change, state, dir, name)
      this.#meta(dir, name, change)
    })
    failpoint('rebase.reapplied-one')
  }

  /** One that keeps its content, and becomes the same file as another. */
  #joins(change: Change): boolean {
    return (
      change.kind === 'metadata' &&
      change.hardlink !== undefined &&
      this.#links.get(change.hardlink) !== change
    )
  }

  #fill(change: Change, state: NodeState, dir: Dir, name: Uint8Array): void {
    if (state.type === 'symlink') {
      this.#disk.makeLink(dir, name, state.link ?? NO_NAME)
      return
    }
    const first = change.hardlink === undefined ? undefined : this.#links.get(change.hardlink)
    if (first !== undefined) {
      this.#at(first, (from, old) => this.#disk.hardLink(from, old, dir, name))
      return
    }
    if (change.hardlink !== undefined) this.#links.set(change.hardlink, change)
    this.#copy(change, state, dir, name)
  }

  #copy(change: Change, state: NodeState, dir: Dir, name: Uint8Array): void {
    const merged = this.#merged.get(change)
    if (merged !== undefined) {
      this.#disk.writeAt(dir, name, 0, merged)
      return
    }
    copyContent(this.#disk, change, state, { sources: this.#sources, dir, name })
  }

  #meta(dir: Dir, name: Uint8Array, change: Change): void {
    if (change.new !== null) this.#disk.setMeta(dir, name, change.new)
  }

  /** The root of a base is a change without a name. */
  #at(change: Change, act: (dir: Dir, name: Uint8Array) => void): void {
    const root = this.#roots[change.base]
    if (root === undefined) throw new PuzzledError('internal', `There is no base ${change.base}`)
    if (change.path.length === 0) {
      act(root, NO_NAME)
      return
    }
    const { parent, name } = splitPath(change.path)
    const dir = this.#disk.openDir(root, parent)
    try {
      act(dir, name)
    } finally {
      this.#disk.close(dir)
    }
  }
}

/** A new node takes the place of the old one; only directories and metadata are changed where they are. */
const makesRoom = ({ kind, old, new: state }: Change): boolean =>
  kind === 'delete' ||
  kind === 'replace' ||
  (kind === 'modify' && (old?.type !== 'dir' || state?.type !== 'dir'))
