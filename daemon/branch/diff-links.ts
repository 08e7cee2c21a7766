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
    for (const [inode, names] of this.#names) if (isAsBefore(names)) this.#names.delete(inode)
    const numbers = new Map<string, number>()
    const all = [...this.#names.values()].flat()
    for (const linked of all.sort((a, b) => Buffer.compare(a.change.path, b.change.path)))
      yield this.#numbered(linked, numbers)
    this.#names.clear()
    this.#size = 0
  }

  /** A name without company is an ordinary file. */
  #numbered({ change, inode }: Linked, numbers: Map<string, number>): Change {
    if ((this.#names.get(inode)?.length ?? 0) < 2) return change
    const hardlink = numbers.get(inode) ?? ++this.#groups
    numbers.set(inode, hardlink)
    return { ...change, hardlink }
  }
}

/** Unchanged, and one file in the base as well. Once for all of its names: there may be a hundred thousand. */
function isAsBefore(names: readonly Linked[]): boolean {
  const ino = names[0]?.change.identity?.ino
  return names.every(({ unchanged, change }) => unchanged && change.identity?.ino === ino)
}
