import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { layerMounts, OverlayLayers } from '../../daemon/branch/overlay.ts'
import { mountLayers } from '../../daemon/branch/overlay-mount.ts'
import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { Profile } from '../../daemon/contract/profile.ts'
import { UMOUNT, umount2 } from '../../daemon/kernel/mount.ts'
import { plainProfile, plainRecord } from '../fixtures/records.ts'

const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }

/** A store with nothing but layers in it, for tests that need a real overlay and no daemon. */
export class TestStore {
  readonly root: string
  readonly layers: OverlayLayers
  #branches = 0

  constructor(parent: string = tmpdir()) {
    this.root = mkdtempSync(join(parent, 'store-'))
    this.layers = new OverlayLayers(this, this.root)
  }

  directory(id: string): string {
    return join(this.root, 'branches', id)
  }

  async fork(bases: readonly string[], profile: Profile = plainProfile()): Promise<TestBranch> {
    this.#branches++
    const id = `branch-${this.#branches}`
    mkdirSync(this.directory(id), { recursive: true, mode: 0o700 })
    const prepared = await this.layers.prepare(id, bases, profile, ROOT)
    const record = plainRecord(id, {
      ...prepared,
      profile: { name: profile.name, sha256: '', resolved: profile },
    })
    return new TestBranch(this, record)
  }

  remove(): void {
    // Agents make paths that are longer than Node can remove.
    execFileSync('rm', ['-rf', this.root])
  }
}

/** One branch whose view is mounted beside the store instead of in an agent's namespace. */
export class TestBranch {
  readonly store: TestStore
  record: BranchRecord
  readonly #views: string[] = []

  constructor(store: TestStore, record: BranchRecord) {
    this.store = store
    this.record = record
  }

  /** Mounts the view of one base and returns where; `unmount` before the directory is removed. */
  mount(base = 0, how: 'agent' | 'view' = 'agent'): string {
    const mount = layerMounts(this.record, this.store.directory(this.record.id))[base]
    if (mount === undefined) throw new Error(`The branch has no base ${base}`)
    const target = mkdtempSync(join(this.store.root, 'view-'))
    mountLayers(mount, target, how)
    this.#views.push(target)
    return target
  }

  /** Freezes the writable layer and goes on in a new one. */
  async checkpoint(): Promise<void> {
    this.unmount()
    this.record = { ...this.record, layers: await this.store.layers.push(this.record) }
  }

  /** Lazily where a process still holds files of the view. */
  unmount(how: 'cleanly' | 'lazily' = 'cleanly'): void {
    for (const view of this.#views.splice(0)) {
      umount2(view, UMOUNT.NOFOLLOW | (how === 'lazily' ? UMOUNT.DETACH : 0))
      rmSync(view, { recursive: true })
    }
  }
}
