// pure
import { Buffer } from 'node:buffer'
import type { Change } from '../contract/changeset.ts'

/** A file of the layer that has several names; whether it makes a group is known when all names were seen. */
export interface Linked {
  change: Change
  inode: string
  unchanged: boolean
}

/** The names of the files of one base that have several; numbers of groups go on from base to base. */
export class LinkedNames {
  readonly #names = new Map<string, Linked[]>()
  #size = 0
  #groups = 0

  get size(): number {
    return this.#size
  }

  add(linked: Linked): void {
    const names = this.#names.get(linked.inode)
    if (names === undefined) this.#names.set(linked.inode, [linked])
    else names.push(linked)
    this.#size++
  }

  /**
   * What the names of one base are as changes, in canonical order, which is the order that groups are numbered in. An
   * unchanged file is one only when another name shares its inode: the commit must link that name to it.
   */
  *take(): Generator<Change> {
    const numbers = new Map<string, number>()
    const all = [...this.#names.values()].flat()
    for (const linked of all.sort((a, b) => Buffer.compare(a.change.path, b.change.path))) {
      const change = this.#resolve(linked, numbers)
      if (change !== undefined) yield change
    }
    this.#names.clear()
    this.#size = 0
  }

  /** A name without company is an ordinary file. */
  #resolve({ change, inode, unchanged }: Linked, numbers: Map<string, number>): Change | undefined {
    const names = this.#names.get(inode) ?? []
    const alone = names.length < 2
    if (alone && unchanged) return undefined
    if (names.every((name) => name.unchanged && name.change.identity?.ino === change.identity?.ino))
      return undefined
    if (!alone && !numbers.has(inode)) numbers.set(inode, ++this.#groups)
    const number = numbers.get(inode)
    return number === undefined ? change : { ...change, hardlink: number }
  }
}
