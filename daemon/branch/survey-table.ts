// pure
import type { DiskStat } from '../lib/disk.ts'

/** What stands in the base at the target of an entry, as far as the journal records it. */
export interface Standing {
  ino: number
  dir: boolean
  size: number
  mtimeNs: bigint
}

const NOTHING = 0
const NODE = 1
const DIRECTORY = 2
const NS_PER_S = 1_000_000_000n

/**
 * What the first look found, one row per operation of the plan: 37 bytes outside the heap, where an object with
 * all that `lstat` says takes ten times as much, for as long as a commit stages. A row that nobody filled
 * names no directory and holds nothing, which every operation refuses.
 */
export class SurveyTable {
  readonly #kinds: Uint8Array
  readonly #parents: Float64Array
  readonly #inodes: Float64Array
  readonly #sizes: Float64Array
  /** Apart, because filesystems have times that do not fit into 64 bits of nanoseconds. */
  readonly #seconds: BigInt64Array
  readonly #nanoseconds: Int32Array

  constructor(rows: number) {
    this.#kinds = new Uint8Array(rows)
    this.#parents = new Float64Array(rows)
    this.#inodes = new Float64Array(rows)
    this.#sizes = new Float64Array(rows)
    this.#seconds = new BigInt64Array(rows)
    this.#nanoseconds = new Int32Array(rows)
  }

  set(row: number, parent: number, target: DiskStat | null): void {
    this.#parents[row] = parent
    if (target === null) return
    this.#kinds[row] = target.kind === 'dir' ? DIRECTORY : NODE
    this.#inodes[row] = target.ino
    this.#sizes[row] = target.size
    this.#seconds[row] = target.mtimeNs / NS_PER_S
    this.#nanoseconds[row] = Number(target.mtimeNs % NS_PER_S)
  }

  /** The inode of the directory that the entry is in. */
  parent(row: number): number {
    return this.#parents[row] ?? 0
  }

  target(row: number): Standing | null {
    const kind = this.#kinds[row] ?? NOTHING
    if (kind === NOTHING) return null
    return {
      ino: this.#inodes[row] ?? 0,
      dir: kind === DIRECTORY,
      size: this.#sizes[row] ?? 0,
      mtimeNs: (this.#seconds[row] ?? 0n) * NS_PER_S + BigInt(this.#nanoseconds[row] ?? 0),
    }
  }
}
