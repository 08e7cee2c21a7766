import { basename, dirname } from 'node:path'
import { type Dir, NO_NAME, nameOf } from '../../daemon/lib/disk.ts'
import { type DurableFiles, temporaryOf } from '../../daemon/lib/durable.ts'
import { errnoOf } from '../../daemon/lib/errors.ts'
import type { ModelDisk } from './model-disk.ts'

/** The records port on the disk that forgets: the same steps in the same order as the real one. */
export class ModelFiles implements DurableFiles {
  readonly #disk: ModelDisk

  constructor(disk: ModelDisk) {
    this.#disk = disk
  }

  async read(path: string): Promise<Buffer | null> {
    try {
      return Buffer.from(this.#disk.readFile(this.#parent(path), nameOf(basename(path))))
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null
      throw error
    }
  }

  async writeRecord(path: string, bytes: Uint8Array): Promise<void> {
    const dir = this.#parent(path)
    const temporary = nameOf(basename(temporaryOf(path)))
    if (this.#disk.stat(dir, temporary) !== null) this.#disk.unlink(dir, temporary)
    this.#disk.writeAt(dir, temporary, 0, bytes)
    this.#disk.fsync(dir, temporary)
    this.#disk.rename(dir, temporary, dir, nameOf(basename(path)), 'replace')
    this.#disk.fsync(dir, NO_NAME)
  }

  async append(path: string, bytes: Uint8Array): Promise<void> {
    const dir = this.#parent(path)
    const name = nameOf(basename(path))
    this.#disk.writeAt(dir, name, this.#disk.stat(dir, name)?.size ?? 0, bytes)
    this.#disk.fsync(dir, name)
    this.#disk.fsync(dir, NO_NAME)
  }

  async makeDirectory(path: string): Promise<boolean> {
    const dir = this.#parent(path)
    if (this.#disk.stat(dir, nameOf(basename(path))) !== null) return false
    this.#disk.makeDir(dir, nameOf(basename(path)), 0o700)
    this.#disk.fsync(dir, NO_NAME)
    return true
  }

  async move(from: string, to: string): Promise<void> {
    const source = this.#parent(from)
    const target = this.#parent(to)
    this.#disk.rename(source, nameOf(basename(from)), target, nameOf(basename(to)), 'replace')
    this.#disk.fsync(target, NO_NAME)
    this.#disk.fsync(source, NO_NAME)
  }

  async list(path: string): Promise<string[]> {
    return this.#disk
      .list(this.#disk.openRoot(path))
      .map((name) => name.toString('latin1'))
      .sort()
  }

  #parent(path: string): Dir {
    return this.#disk.openRoot(dirname(path))
  }
}
