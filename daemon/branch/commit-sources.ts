import type { Change, NodeState } from '../contract/changeset.ts'
import type { Dir, Disk } from '../lib/disk.ts'
import { errnoOf } from '../lib/errors.ts'
import { openAll } from '../lib/open-all.ts'
import type { SourceFile, Sources } from './commit-context.ts'
import { isOperation, type Operation, pathOf, splitPath } from './journal/format.ts'

/**
 * New content straight from the layers, topmost first. Nothing is mounted and nothing writes there any more; that the
 * bytes are the approved ones is checked by their digest while they are copied.
 */
export class LayerSources implements Sources {
  readonly #disk: Disk
  /** Per base, the upper directories from the top down. */
  readonly #layers: readonly (readonly Dir[])[]
  /** The directory of the last file in each layer: changes come directory by directory. */
  #last: { base: number; parent: Buffer; dirs: (Dir | 'absent' | 'masked' | undefined)[] } | undefined

  constructor(disk: Disk, layers: readonly (readonly string[])[]) {
    this.#disk = disk
    const opened = openRoots(disk, layers.flat())
    this.#layers = layers.map(({ length }) => opened.splice(0, length))
  }

  find(change: Change, state: NodeState): SourceFile | null {
    const { parent, name } = splitPath(change.path)
    for (const layer of (this.#layers[change.base] ?? []).keys()) {
      const dir = this.#open(change.base, layer, parent)
      if (dir === 'masked') return null
      if (dir === 'absent') continue
      const stat = this.#disk.stat(dir, name)
      if (stat === null) continue
      // A whiteout or another type hides what lies below. Another size is another content: it need not be copied to tell.
      const isIt = stat.kind === 'file' && stat.size === state.size
      return isIt ? { dir, name, release: () => undefined } : null
    }
    return null
  }

  #open(base: number, layer: number, parent: Buffer): Dir | 'absent' | 'masked' {
    let last = this.#last
    if (last === undefined || last.base !== base || !last.parent.equals(parent)) {
      this.#forget()
      last = { base, parent, dirs: [] }
      this.#last = last
    }
    const dir = last.dirs[layer] ?? tryOpen(this.#disk, this.#layers[base]?.[layer] ?? -1, parent)
    last.dirs[layer] = dir
    return dir
  }

  #forget(): void {
    const dirs = this.#last?.dirs ?? []
    this.#last = undefined
    for (const dir of dirs) if (typeof dir === 'number') this.#disk.close(dir)
  }

  close(): void {
    this.#forget()
    for (const dir of this.#layers.flat()) this.#disk.close(dir)
  }
}

const openRoots = (disk: Disk, paths: readonly string[]): Dir[] =>
  openAll(
    paths,
    (path) => disk.openRoot(path),
    (dir) => disk.close(dir),
  )

/** A directory below another; `masked` where something that is no directory hides it. */
export function tryOpen(disk: Disk, root: Dir, path: Uint8Array): Dir | 'absent' | 'masked' {
  try {
    return disk.openDir(root, path)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT') return 'absent'
    if (errno === 'ENOTDIR' || errno === 'ELOOP') return 'masked'
    throw error
  }
}

/**
 * The old content that a commit kept: in the slots of its operations, or still in the base where only metadata changed. The
 * areas are its own from the beginning, also when it cannot be made.
 */
export class KeptSources implements Sources {
  readonly #disk: Disk
  readonly #slots = new Map<string, Exclude<Operation, { kind: 'adjust' }>>()
  readonly #areas: readonly Dir[]
  readonly #roots: readonly Dir[]

  constructor(disk: Disk, operations: readonly Operation[], areas: readonly Dir[], roots: readonly string[]) {
    this.#disk = disk
    this.#areas = areas
    try {
      this.#roots = openRoots(disk, roots)
    } catch (error) {
      for (const area of areas) disk.close(area)
      throw error
    }
    for (const operation of operations)
      if (isOperation(operation) && (operation.kind === 'swap' || operation.kind === 'remove'))
        this.#slots.set(keyOf(operation.base, pathOf(operation)), operation)
  }

  find(change: Change, _state: NodeState): SourceFile | null {
    const path = Buffer.from(change.path)
    for (let end = path.length; end > 0; end = path.lastIndexOf(0x2f, end - 1)) {
      const operation = this.#slots.get(keyOf(change.base, path.subarray(0, end)))
      const area = operation === undefined ? undefined : this.#areas[operation.area]
      if (operation === undefined || area === undefined) continue
      return this.#open(area, Buffer.concat([Buffer.from(operation.slot, 'latin1'), path.subarray(end)]))
    }
    const root = this.#roots[change.base]
    return root === undefined ? null : this.#open(root, path)
  }

  #open(from: Dir, path: Buffer): SourceFile | null {
    const { parent, name } = splitPath(path)
    const dir = tryOpen(this.#disk, from, parent)
    if (dir === 'masked' || dir === 'absent') return null
    if (this.#disk.stat(dir, name)?.kind === 'file')
      return { dir, name, release: () => this.#disk.close(dir) }
    this.#disk.close(dir)
    return null
  }

  close(): void {
    for (const dir of [...this.#roots, ...this.#areas]) this.#disk.close(dir)
  }
}

const keyOf = (base: number, path: Buffer): string => `${base}:${path.toString('latin1')}`
