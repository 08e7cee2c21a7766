import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { AREA_NAME } from '../../daemon/branch/commit-areas.ts'
import { WorkerCommitter } from '../../daemon/branch/committer.ts'
import { LayerDiffer } from '../../daemon/branch/diff.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { recoverCommits } from '../../daemon/branch/recover.ts'
import { collectCommits, DEFAULT_RETENTION, type Retention } from '../../daemon/branch/retention.ts'
import { needs, root } from '../tier/needs.ts'
import { TestStore } from './branches.ts'
import { NO_HOOKS, sh } from './commit-ground.ts'
import { missingFor } from './filesystems.ts'

const PATH = `${process.env.PATH}:/usr/sbin:/sbin`
const run = (command: string, ...args: string[]): void => {
  execFileSync(command, args, { stdio: 'ignore', env: { ...process.env, PATH } })
}

/** A filesystem in a file that comes and goes, with another one that can be mounted in its place. */
class Stick {
  readonly folder = mkdtempSync(join(tmpdir(), 'stick-'))
  readonly at = join(this.folder, 'at')

  constructor() {
    mkdirSync(this.at)
    for (const image of ['own', 'other']) {
      writeFileSync(join(this.folder, image), '')
      truncateSync(join(this.folder, image), 32 << 20)
      run('mkfs.ext4', '-Fq', join(this.folder, image))
    }
  }

  plug(image = 'own'): void {
    run('mount', '-o', 'loop', join(this.folder, image), this.at)
  }

  pull(): void {
    run('umount', this.at)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true })
  }
}

describe('what a commit left on a filesystem that is not mounted', () => {
  const it = needs(root, missingFor('ext4'))
  const disk = new KernelDisk()
  let stick: Stick
  let store: TestStore
  let committer: WorkerCommitter
  const old: Retention = { ...DEFAULT_RETENTION, ageMs: -1 }
  const journalOf = (): string => join(store.root, 'journal')
  const journal = (): string[] => readdirSync(journalOf())
  const area = (): string[] => readdirSync(join(stick.at, AREA_NAME))
  const collect = (retention = old): readonly string[] =>
    collectCommits(disk, journalOf(), retention, Date.now()).commits

  beforeEach(() => {
    if (root !== undefined) return
    stick = new Stick()
    stick.plug()
    store = new TestStore()
    for (const folder of ['journal', 'staging', 'trash']) mkdirSync(join(store.root, folder), { mode: 0o700 })
    committer = new WorkerCommitter(store, () => new Date())
  })
  afterEach(async () => {
    await committer?.close()
    store?.remove()
    stick?.remove()
  })

  const land = async (base: string): Promise<string> => {
    mkdirSync(base, { recursive: true })
    sh('echo old > file', base)
    const branch = await store.fork([base])
    branch.record = { ...branch.record, createdAt: new Date().toISOString() }
    sh('echo new > file', branch.mount())
    branch.unmount()
    const changeset = await new LayerDiffer(store).diff(branch.record)
    return (await committer.commit(branch.record, changeset, NO_HOOKS)).commit
  }

  it.each(['nothing', 'other'])(
    'is known until it is back, and then removed (in its place: %s)',
    async (instead) => {
      const here = mkdtempSync(join(tmpdir(), 'here-'))
      const [away, present] = [await land(join(stick.at, 'base')), await land(join(here, 'base'))]
      stick.pull()
      if (instead === 'other') stick.plug('other')
      if (instead === 'other') mkdirSync(join(stick.at, AREA_NAME), { mode: 0o700 })
      // What is on the stick keeps nobody else's.
      expect(collect()).toEqual([present])
      expect(journal().sort()).toEqual([`${away}.changes`, `${away}.log`])
      if (instead === 'other') stick.pull()
      stick.plug()
      expect(area()).toEqual([away])
      expect(collect()).toEqual([away])
      expect([area(), journal()]).toEqual([[], []])
      stick.pull()
      rmSync(here, { recursive: true })
    },
  )

  it('counts as what it takes up: a large file of holes can be taken back', async () => {
    const base = join(stick.at, 'base')
    mkdirSync(base)
    sh('truncate -s 64M image', base)
    const branch = await store.fork([base])
    branch.record = { ...branch.record, createdAt: new Date().toISOString() }
    sh('rm image', branch.mount())
    branch.unmount()
    const changeset = await new LayerDiffer(store).diff(branch.record)
    await committer.commit(branch.record, changeset, NO_HOOKS)
    expect(collect({ ...DEFAULT_RETENTION, bytes: 1 << 20 })).toEqual([])
    expect(collect({ ...DEFAULT_RETENTION, bytes: 0 })).toHaveLength(1)
    stick.pull()
  })

  it('is given up at last where filesystems never come back', async () => {
    const commits = [await land(join(stick.at, 'a')), await land(join(stick.at, 'b'))]
    stick.pull()
    expect(collect({ ...old, count: 1 })).toEqual([])
    expect(journal().sort()).toEqual([`${commits[1]}.changes`, `${commits[1]}.log`])
  })

  it('keeps no other commit where it is read-only', async () => {
    const here = mkdtempSync(join(tmpdir(), 'here-'))
    const locked = await land(join(stick.at, 'base'))
    const present = await land(join(here, 'base'))
    run('mount', '-o', 'remount,ro', stick.at)
    expect(collect()).toEqual([present])
    run('mount', '-o', 'remount,rw', stick.at)
    expect(collect()).toEqual([locked])
    stick.pull()
    rmSync(here, { recursive: true })
  })

  it('is swept when it is back, where a crash left it without a decision', async () => {
    mkdirSync(join(stick.at, 'base'))
    sh('echo old > file', join(stick.at, 'base'))
    const commit = await land(join(stick.at, 'base'))
    collect()
    const begun = { path: join(stick.at, AREA_NAME), dev: 0, filesystemId: idOf(stick.at) }
    writeFileSync(join(journalOf(), `${commit}.open`), JSON.stringify([begun]))
    sh(`mkdir -m 700 ${AREA_NAME}/${commit}; echo half > ${AREA_NAME}/${commit}/0`, stick.at)
    stick.pull()
    const [fate] = recoverCommits(disk, journalOf(), '2026-01-01T00:00:00.000Z')
    expect(fate).toMatchObject({ fate: 'swept', reason: expect.stringContaining('is not mounted') })
    stick.plug()
    recoverCommits(disk, journalOf(), '2026-01-01T00:00:00.000Z')
    expect([area(), journal(), existsSync(join(stick.at, 'base/file'))]).toEqual([[], [], true])
    stick.pull()
  })
})

function idOf(path: string): string | undefined {
  const disk = new KernelDisk()
  const dir = disk.openRoot(path)
  try {
    return disk.filesystemOf(dir)
  } finally {
    disk.close(dir)
  }
}
