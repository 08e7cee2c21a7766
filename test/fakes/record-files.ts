import type { RecordFiles } from '../../daemon/policy/record-files.ts'

/** Record files in memory; `failWrites` makes every write fail as a full disk does. */
export class MemoryRecords implements RecordFiles {
  readonly files = new Map<string, Buffer>()
  failWrites = false

  read(path: string): Promise<Buffer | null> {
    return Promise.resolve(this.files.get(path) ?? null)
  }

  async writeRecord(path: string, bytes: Uint8Array): Promise<void> {
    this.#demandSpace()
    this.files.set(path, Buffer.from(bytes))
  }

  async append(path: string, bytes: Uint8Array): Promise<void> {
    this.#demandSpace()
    this.files.set(path, Buffer.concat([this.files.get(path) ?? Buffer.alloc(0), bytes]))
  }

  list(path: string): Promise<string[]> {
    const names = [...this.files.keys()].filter((each) => each.startsWith(`${path}/`))
    return Promise.resolve(names.map((each) => each.slice(path.length + 1)).sort())
  }

  #demandSpace(): void {
    if (this.failWrites) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  }
}
