import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { afterEach, beforeEach } from 'vitest'
import { LayerDiffer } from '../../daemon/branch/diff.ts'
import { showBytes } from '../../daemon/contract/bytes.ts'
import type { Change, Changeset } from '../../daemon/contract/changeset.ts'
import { root } from '../tier/needs.ts'
import { type TestBranch, TestStore } from './branches.ts'
import { makePlace, type Place } from './filesystems.ts'

/** A base and a branch over it for each test of a file; the branch is forked at the first `diffOf`. */
export class DiffGround {
  #store: TestStore | undefined
  #place: Place | undefined
  branch: TestBranch | undefined

  constructor() {
    beforeEach(() => {
      if (root !== undefined) return
      this.#store = new TestStore()
      this.#place = makePlace('host')
    })
    afterEach(() => {
      if (root !== undefined) return
      this.branch?.unmount()
      this.branch = undefined
      this.#place?.remove()
      this.#store?.remove()
    })
  }

  get store(): TestStore {
    if (this.#store === undefined) throw new Error('The store exists only during a test')
    return this.#store
  }

  get base(): string {
    if (this.#place === undefined) throw new Error('The base exists only during a test')
    return this.#place.path
  }

  async fork(): Promise<TestBranch> {
    this.branch ??= await this.store.fork([this.base])
    return this.branch
  }

  /** Lets `act` work in the branch's view and says what the branch would change. */
  async diffOf(act: (view: string) => void): Promise<Changeset> {
    const branch = await this.fork()
    act(branch.mount())
    branch.unmount()
    return new LayerDiffer(this.store).diff(branch.record)
  }
}

export const lines = (changeset: Changeset): string[] =>
  changeset.changes.map((change) => `${change.kind} ${showBytes(Buffer.from(change.path))}`)

export function at(changeset: Changeset, path: string): Change {
  const found = changeset.changes.find((change) => Buffer.from(change.path).toString() === path)
  if (found === undefined) throw new Error(`No change of ${path} in ${lines(changeset).join(', ')}`)
  return found
}

export const write = (path: string, text: string): void => writeFileSync(path, text)
export const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex')
