import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, root } from '../tier/needs.ts'
import { CommitGround, describeTree, sh } from './commit-ground.ts'
import { type FilesystemKind, missingFor } from './filesystems.ts'

/** Another filesystem under the same name and with the same device number: what a stick in the same slot is. */

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  }).trim()

/** One device, which is held: nobody else gets its number, whatever is written on it. */
class Slot {
  readonly folder = mkdtempSync(join(tmpdir(), 'slot-'))
  readonly path = join(this.folder, 'at')
  readonly #image = join(this.folder, 'image')
  readonly #device: string
  readonly #kind: FilesystemKind

  constructor(kind: FilesystemKind) {
    this.#kind = kind
    mkdirSync(this.path)
    writeFileSync(this.#image, '')
    truncateSync(this.#image, 320 * 1024 * 1024)
    this.#device = run('losetup', '--find', '--show', this.#image)
    this.format()
  }

  /** A new filesystem, with the same directories in it. */
  format(): void {
    run(`mkfs.${this.#kind}`, this.#kind === 'ext4' ? '-Fq' : '-fq', this.#device)
    this.mount()
    mkdirSync(this.base)
    sh('mkdir d; echo old > d/f', this.base)
  }

  get base(): string {
    return join(this.path, 'base')
  }

  mount(): void {
    run('mount', '-t', this.#kind, this.#device, this.path)
  }

  unmount(): void {
    run('umount', this.path)
  }

  remove(): void {
    this.unmount()
    run('losetup', '--detach', this.#device)
    rmSync(this.folder, { recursive: true })
  }
}

describe.each(['ext4', 'xfs'] as const)('a base on %s', (kind) => {
  const missing = [root, missingFor(kind)]
  const it = needs(...missing)
  const ground = new CommitGround()
  let slot: Slot | undefined

  beforeEach(() => {
    if (missing.every((reason) => reason === undefined)) slot = new Slot(kind)
  })
  afterEach(() => {
    slot?.remove()
    slot = undefined
  })

  async function reviewed(at: Slot) {
    const branch = await ground.store.fork([at.base])
    branch.record = { ...branch.record, createdAt: new Date().toISOString() }
    ground.work(branch, (view) => sh('echo new > d/g', view))
    return { branch, changeset: await ground.diff(branch) }
  }

  it('that is another one with the same number is refused: by a commit, a diff and a start', async () => {
    if (slot === undefined) return expect.unreachable()
    const { branch, changeset } = await reviewed(slot)
    const { dev } = statSync(slot.base)
    slot.unmount()
    slot.format()
    expect(statSync(slot.base).dev).toBe(dev)
    const before = describeTree(slot.path)
    const refused = { code: 'base-invalid', message: expect.stringMatching(/another filesystem/) }
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject(refused)
    await expect(ground.diff(branch)).rejects.toMatchObject(refused)
    await expect(ground.store.layers.mounts(branch.record)).rejects.toMatchObject(refused)
    expect(describeTree(slot.path)).toEqual(before)
    expect(ground.journal).toEqual([])
  })

  it('is the same one when it comes back under another number', async () => {
    if (slot === undefined) return expect.unreachable()
    const { branch, changeset } = await reviewed(slot)
    slot.unmount()
    slot.mount()
    // As the record would stand after a boot at which devices were found in another order.
    const bases = branch.record.bases.map((base) => ({ ...base, dev: base.dev + 1 }))
    branch.record = { ...branch.record, bases }
    await expect(ground.store.layers.mounts(branch.record)).resolves.toHaveLength(1)
    const { commit } = await ground.commit(branch, changeset)
    expect(sh('cat d/g', slot.base)).toBe('new\n')
    await ground.committer.revert(commit, branch.record.requester)
    expect(sh('ls d', slot.base)).toBe('f\n')
  })

  it('that is another one is not what a revert takes its commit back from', async () => {
    if (slot === undefined) return expect.unreachable()
    const { branch, changeset } = await reviewed(slot)
    const { commit } = await ground.commit(branch, changeset)
    slot.unmount()
    slot.format()
    sh('echo new > d/g', slot.base)
    mkdirSync(join(slot.path, '.puzzled', commit), { recursive: true, mode: 0o700 })
    await expect(ground.committer.revert(commit, branch.record.requester)).rejects.toMatchObject({
      code: 'base-invalid',
    })
    expect(sh('cat d/g', slot.base)).toBe('new\n')
  })
})

/** A base is a path on a filesystem: what stands there now is what a commit compares with, whoever put it there. */
describe('another directory in the place of a base', () => {
  const it = needs(root)
  const ground = new CommitGround()

  async function exchanged(script: string) {
    sh('mkdir d; echo old > d/f; echo k > k', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh(script, view))
    const changeset = await ground.diff(branch)
    // With owners, modes and times as they were: only the inodes are others.
    sh('mv base away && cp -a away base', ground.place)
    return { branch, changeset, before: describeTree(ground.place) }
  }

  it.each([
    ['a file that was written', 'echo new > d/f'],
    ['a file that was removed', 'rm k'],
    ['a directory that was removed', 'rm -r d'],
    ['a file that got another mode', 'chmod 600 k'],
  ])('makes %s a conflict', async (_what, script) => {
    const { branch, changeset, before } = await exchanged(script)
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'conflict' })
    expect(describeTree(ground.place)).toEqual(before)
  })

  it('gets what was added, and nothing else', async () => {
    const { branch } = await exchanged('mkdir n; echo new > n/f')
    await ground.commit(branch, await ground.diff(branch))
    expect(sh('cat n/f d/f', ground.base)).toBe('new\nold\n')
    expect(sh('ls away', ground.place)).toBe('d\nk\n')
  })
})
