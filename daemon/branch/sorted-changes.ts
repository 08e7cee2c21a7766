// pure
import { Buffer } from 'node:buffer'
import type { Change } from '../contract/changeset.ts'
import { PackedChange } from './packed-change.ts'

/** Changes by their place, found by halving: they stand in canonical order, and an index of as many keys would be as large again. */
export class SortedChanges {
  readonly #changes: readonly Change[]
  /** Whoever looks for a path looks for it several times. */
  #last = 0

  constructor(changes: readonly Change[]) {
    for (let index = 1; index < changes.length; index++) {
      const [before, change] = [changes[index - 1], changes[index]]
      if (before === undefined || change === undefined) continue
      if (compareTo(before, change.base, change.path) >= 0)
        throw new RangeError('The changes are not in canonical order')
    }
    this.#changes = changes
  }

  find(base: number, path: Uint8Array): Change | undefined {
    return this.#changes[this.indexOf(base, path)]
  }

  /** -1 where no change has this place. */
  indexOf(base: number, path: Uint8Array): number {
    const last = this.#changes[this.#last]
    if (last !== undefined && compareTo(last, base, path) === 0) return this.#last
    let [from, to] = [0, this.#changes.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      const change = this.#changes[middle]
      if (change === undefined) return -1
      const order = compareTo(change, base, path)
      if (order === 0) {
        this.#last = middle
        return middle
      }
      if (order < 0) from = middle + 1
      else to = middle
    }
    return -1
  }
}

const compareTo = (change: Change, base: number, path: Uint8Array): number =>
  change instanceof PackedChange
    ? change.compareTo(base, path)
    : change.base - base || Buffer.compare(change.path, path)
