import type { BranchRecord } from '../contract/branch.ts'

/**
 * Records as they are on the disk, the most recently used ones. The store's lock keeps every other process out, so what
 * was read here and not written over since is what is there.
 */
export class RecordMemory {
  #limit = 0
  /** Counts what was written: a reading during which it grew may have found what was there before. */
  #writes = 0
  /** In the order of use. */
  readonly #records = new Map<string, BranchRecord>()

  /** Of more than so many, those that were used longest ago are let go. */
  limit(records: number): void {
    this.#limit = records
    this.#trim()
  }

  has(id: string): boolean {
    return this.#records.has(id)
  }

  get(id: string): BranchRecord | undefined {
    const record = this.#records.get(id)
    if (record !== undefined) this.#use(id, record)
    return record
  }

  /** To be called before a reading; what it returns is for `keep`. */
  begin(): number {
    return this.#writes
  }

  /** Not kept when anything was written since `begun`; one that was read in passing makes no other one go. */
  keep(id: string, record: BranchRecord, { begun, passing }: { begun: number; passing: boolean }): void {
    if (begun !== this.#writes || (passing && this.#records.size >= this.#limit)) return
    this.#use(id, record)
    this.#trim()
  }

  /** It was written, or may have been: the disk counts. */
  written(id: string): void {
    this.#writes++
    this.#records.delete(id)
  }

  #use(id: string, record: BranchRecord): void {
    this.#records.delete(id)
    this.#records.set(id, record)
  }

  #trim(): void {
    for (const oldest of this.#records.keys()) {
      if (this.#records.size <= this.#limit) return
      this.#records.delete(oldest)
    }
  }
}
