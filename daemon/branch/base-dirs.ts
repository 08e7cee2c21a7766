import { encodePath } from '../contract/bytes.ts'
import { type Dir, type Disk, type DiskStat, NO_NAME } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'

/** A directory that is held. What it is and on which mount cannot change while it is open; everything else can. */
export interface BaseDir {
  dir: Dir
  ino: number
  dev: number
  mount: number
  /** As it was when it was opened. */
  mode: DiskStat['mode']
}

/**
 * Open directories of the bases. They are opened once, beneath their base and through no symlink, and held: whoever
 * swaps a directory for a link afterwards moves the name, not the directory that the commit works in.
 */
export class BaseDirs {
  readonly #disk: Disk
  readonly #roots: readonly Dir[]
  readonly #mounts: number[] = []
  readonly #open = new Map<string, BaseDir>()
  readonly #limit: number
  /** The one that was asked for last: changes come directory by directory. */
  #last: { base: number; path: Buffer; entry: BaseDir } | undefined

  constructor(disk: Disk, roots: readonly Dir[], limit = 512) {
    this.#disk = disk
    this.#roots = roots
    this.#limit = limit
  }

  root(base: number): Dir {
    const dir = this.#roots[base]
    if (dir === undefined) throw new PuzzledError('internal', `There is no base number ${base}`)
    return dir
  }

  /** The mount that a base is on. */
  mountOf(base: number): number {
    const mount = this.#mounts[base] ?? this.#disk.mountOf(this.root(base))
    this.#mounts[base] = mount
    return mount
  }

  /** With `ino`, a directory that is another one than expected is refused. */
  open(base: number, path: Uint8Array, ino?: number): BaseDir {
    const last = this.#last
    const entry = last?.base === base && last.path.equals(path) ? last.entry : this.#find(base, path)
    if (ino !== undefined && ino !== entry.ino)
      throw new PuzzledError('conflict', `"${encodePath(path).path}" is another directory now`)
    return entry
  }

  #find(base: number, path: Uint8Array): BaseDir {
    const key = `${base}:${Buffer.from(path).toString('latin1')}`
    let entry = this.#open.get(key)
    if (entry === undefined) {
      entry = this.#hold(this.#disk.openDir(this.root(base), path))
      this.#evict()
    } else this.#open.delete(key)
    this.#open.set(key, entry)
    this.#last = { base, path: Buffer.from(path), entry }
    return entry
  }

  #hold(dir: Dir): BaseDir {
    const stat = this.#disk.stat(dir, NO_NAME)
    return {
      dir,
      ino: stat?.ino ?? 0,
      dev: stat?.dev ?? 0,
      mount: this.#disk.mountOf(dir),
      mode: stat?.mode ?? 0,
    }
  }

  /** Whether the name still leads to the directory that was opened. */
  isStill(base: number, path: Uint8Array, ino: number): boolean {
    const dir = this.#disk.openDir(this.root(base), path)
    try {
      return this.#disk.stat(dir, NO_NAME)?.ino === ino
    } finally {
      this.#disk.close(dir)
    }
  }

  close(): void {
    this.#last = undefined
    for (const { dir } of this.#open.values()) this.#disk.close(dir)
    this.#open.clear()
    for (const root of this.#roots) this.#disk.close(root)
  }

  #evict(): void {
    if (this.#open.size < this.#limit) return
    const oldest = this.#open.entries().next().value
    if (oldest === undefined) return
    this.#last = undefined
    this.#open.delete(oldest[0])
    this.#disk.close(oldest[1].dir)
  }
}
