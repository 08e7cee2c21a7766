import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { sealChangeset } from '../../daemon/branch/changeset.ts'
import { Reader, readChange } from '../../daemon/branch/changeset-codec.ts'
import type { Landed } from '../../daemon/branch/commit.ts'
import type { JobHooks } from '../../daemon/branch/commit-context.ts'
import { WorkerCommitter } from '../../daemon/branch/committer.ts'
import { diffJob, LayerDiffer } from '../../daemon/branch/diff.ts'
import { runDiff } from '../../daemon/branch/diff-job.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { Change, Changeset } from '../../daemon/contract/changeset.ts'
import type { Profile } from '../../daemon/contract/profile.ts'
import { type Dir, NO_NAME } from '../../daemon/lib/disk.ts'
import { root } from '../tier/needs.ts'
import { type TestBranch, TestStore } from './branches.ts'
import { type FilesystemKind, makePlace, type Place } from './filesystems.ts'

export const NO_HOOKS: JobHooks = { beforeIntent: async () => undefined, afterIntent: async () => undefined }

/** A base, a store beside it and a committer for each test of a file. */
export class CommitGround {
  #kind: FilesystemKind
  #store: TestStore | undefined
  #place: Place | undefined
  #committer: WorkerCommitter | undefined
  #branches: TestBranch[] = []

  constructor(kind: FilesystemKind = 'host') {
    this.#kind = kind
    beforeEach(() => {
      if (root !== undefined) return
      this.#store = new TestStore()
      for (const folder of ['journal', 'staging', 'trash'])
        mkdirSync(join(this.#store.root, folder), { mode: 0o700 })
      this.#place = makePlace(this.#kind)
      mkdirSync(this.base)
      this.#committer = new WorkerCommitter(this.#store, () => new Date())
    })
    afterEach(async () => {
      for (const branch of this.#branches.splice(0)) branch.unmount()
      await this.#committer?.close()
      this.#place?.remove()
      this.#store?.remove()
    })
  }

  get store(): TestStore {
    if (this.#store === undefined) throw new Error('The store exists only during a test')
    return this.#store
  }

  /** The root of the filesystem that the base is on. */
  get place(): string {
    if (this.#place === undefined) throw new Error('The place exists only during a test')
    return this.#place.path
  }

  get base(): string {
    return join(this.place, 'base')
  }

  get committer(): WorkerCommitter {
    if (this.#committer === undefined) throw new Error('The committer exists only during a test')
    return this.#committer
  }

  async fork(change: Partial<BranchRecord> = {}, profile?: Profile): Promise<TestBranch> {
    const branch = await this.store.fork([this.base], profile)
    branch.record = { ...branch.record, createdAt: new Date().toISOString(), ...change }
    this.#branches.push(branch)
    return branch
  }

  /** Lets `act` work in the view of a branch, and says what the view looked like at the end. */
  work(branch: TestBranch, act: (view: string) => void): string[] {
    const view = branch.mount()
    act(view)
    const seen = describeTree(view)
    branch.unmount()
    return seen
  }

  diff(branch: TestBranch): Promise<Changeset> {
    return new LayerDiffer(this.store).diff(branch.record)
  }

  async commit(branch: TestBranch, changeset?: Changeset): Promise<Landed> {
    return this.committer.commit(branch.record, changeset ?? (await this.diff(branch)), NO_HOOKS)
  }

  /** Everything that a commit keeps on disk beside the base. */
  get staged(): string[] {
    return readdirSync(join(this.store.root, 'staging'))
  }

  get journal(): string[] {
    return readdirSync(join(this.store.root, 'journal')).sort()
  }
}

/** The diff on this thread: starting a worker for each of thousands would take longer than they do. */
export function diffHere(record: BranchRecord, store: TestStore): Changeset {
  const changes: Change[] = []
  let digest = ''
  runDiff(diffJob(record, store.directory(record.id)), (message) => {
    if (message.kind === 'done') digest = message.digest
    if (message.kind !== 'changes') return
    for (const reader = new Reader(message.bytes); !reader.done; ) changes.push(readChange(reader))
  })
  const changeset = sealChangeset({ bases: record.bases.map((base) => base.path), changes, requests: [] })
  if (changeset.digest !== digest) throw new Error('The diff sent another changeset than it digested')
  return changeset
}

/** A tree as lines: everything that a commit lands, and which names share an inode. */
export function describeTree(path: string): string[] {
  const disk = new KernelDisk()
  const lines: string[] = []
  const inodes = new Map<number, number>()
  const visit = (dir: Dir, name: Uint8Array, shown: string): void => {
    const stat = disk.stat(dir, name)
    if (stat === null) return
    const { kind, mode, uid, gid, mtimeNs, nlink } = stat
    const link =
      kind === 'file' && nlink > 1
        ? ` inode#${inodes.get(stat.ino) ?? inodes.set(stat.ino, inodes.size).size}`
        : ''
    const content =
      kind === 'file'
        ? `${stat.size} ${disk.digest(dir, name)}`
        : kind === 'symlink'
          ? disk.readLink(dir, name).toString('latin1')
          : ''
    const xattrs =
      kind === 'symlink'
        ? []
        : disk.xattrs(dir, name).map((xattr) => `${xattr.name}=${Buffer.from(xattr.value).toString('hex')}`)
    lines.push(
      `${shown || '/'} ${kind} ${mode.toString(8)} ${uid}:${gid} ${mtimeNs}${link} ${content} ${xattrs.join(' ')}`,
    )
    if (kind !== 'dir') return
    const open = name.length === 0 ? disk.openDir(dir, NO_NAME) : disk.openDir(dir, name)
    for (const child of disk.list(open).sort(Buffer.compare))
      visit(open, child, `${shown}/${child.toString('latin1')}`)
    disk.close(open)
  }
  const top = disk.openRoot(path)
  visit(top, NO_NAME, '')
  disk.close(top)
  return lines
}

export const sh = (script: string, cwd: string): string =>
  execFileSync('sh', ['-ec', script], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

export const temporary = (name: string): string => mkdtempSync(join(tmpdir(), name))
