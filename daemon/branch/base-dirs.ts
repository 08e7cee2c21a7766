import { encodePath } from '../contract/bytes.ts'
import { type Dir, type Disk, NO_NAME } from '../lib/disk.ts'
import { PuzzledError } from '../lib/errors.ts'

/**
 * Open directories of the bases. They are opened once, beneath their base and through no symlink, and held: whoever
 * swaps a directory for a link afterwards moves the name, not the directory that the commit works in.
 */
export class BaseDirs {
  readonly #disk: Disk
  readonly #roots: readonly Dir[]
  readonly #open = new Map<string, { dir: Dir; ino: number }>()
  readonly #limit: number

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

  /** With `ino`, a directory that is another one than expected is refused. */
  open(base: number, path: Uint8Array, ino?: number): { dir: Dir; ino: number } {
    const key = `${base}:${Buffer.from(path).toString('latin1')}`
    let entry = this.#open.get(key)
    if (entry === undefined) {
      const dir = this.#disk.openDir(this.root(base), path)
      entry = { dir, ino: this.#disk.stat(dir, NO_NAME)?.ino ?? 0 }
      this.#evict()
    } else this.#open.delete(key)
    this.#open.set(key, entry)
    if (ino !== undefined && ino !== entry.ino)
      throw new PuzzledError('conflict', `"${encodePath(path).path}" is another directory now`)
    return entry
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
    for (const { dir } of this.#open.values()) this.#disk.close(dir)
    this.#open.clear()
    for (const root of this.#roots) this.#disk.close(root)
  }

  #evict(): void {
    if (this.#open.size < this.#limit) return
    const oldest = this.#open.entries().next().value
    if (oldest === undefined) return
    this.#open.delete(oldest[0])
    this.#disk.close(oldest[1].dir)
  }
}
