import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { AREA_NAME } from '../../daemon/branch/commit-areas.ts'
import { WorkerCommitter } from '../../daemon/branch/committer.ts'
import { LayerDiffer } from '../../daemon/branch/diff.ts'
import type { Requester } from '../../daemon/contract/branch.ts'
import type { Changeset } from '../../daemon/contract/changeset.ts'
import { openRoot, withFd } from '../../daemon/kernel/paths.ts'
import { getProject, setProject } from '../../daemon/kernel/quota.ts'
import { needs, program, root } from '../tier/needs.ts'
import { type TestBranch, TestStore } from './branches.ts'
import { CommitGround, describeTree, NO_HOOKS, sh } from './commit-ground.ts'
import { makePlace, missingFor } from './filesystems.ts'

const ROOT: Requester = { uid: 0, gid: 0, groups: [], name: 'root' }
const TREE =
  'mkdir d gone; echo old > d/file; echo old > gone/in; echo old > rm; ln -s rm link; echo old > plain'
const WORK =
  'echo new >> d/file; rm -r gone; rm rm; ln -sf d link; mkdir made; echo in > made/in; echo fresh > fresh; chmod 600 plain'

/** Does the work in a branch, lands it, takes it back and takes that back; each time the base must be what it should. */
async function landAndRevert(
  base: string,
  branch: TestBranch,
  committer: WorkerCommitter,
  { diff, work }: { diff: () => Promise<Changeset>; work: (act: (view: string) => void) => string[] },
  script = WORK,
): Promise<void> {
  const before = describeTree(base)
  const seen = work((view) => sh(script, view))
  const landed = await committer.commit(branch.record, await diff(), NO_HOOKS)
  expect(visible(base)).toEqual(seen)
  const reverted = await committer.revert(landed.commit, ROOT)
  expect(visible(base)).toEqual(before)
  await committer.revert(reverted.commit, ROOT)
  expect(visible(base)).toEqual(seen)
}

/** A tree as its owner sees it: what puzzled keeps in the root of a filesystem is not theirs. */
const visible = (path: string): string[] => describeTree(path).filter((line) => !line.includes(AREA_NAME))

describe('a base in a subvolume', () => {
  const it = needs(root, missingFor('btrfs'), program('btrfs'))
  const ground = new CommitGround('btrfs')
  const subvolume = (path: string): void => {
    execFileSync('btrfs', ['subvolume', 'create', path], { stdio: 'ignore' })
  }
  const ways = (branch: TestBranch) => ({
    diff: () => ground.diff(branch),
    work: (act: (view: string) => void) => ground.work(branch, act),
  })

  it('that is not mounted by itself lands, and is taken back', async () => {
    execFileSync('rmdir', [ground.base])
    subvolume(ground.base)
    sh(TREE, ground.base)
    const branch = await ground.fork()
    await landAndRevert(ground.base, branch, ground.committer, ways(branch))
    // In its own root, and not in that of the mount.
    expect(existsSync(join(ground.base, AREA_NAME))).toBe(true)
    expect(existsSync(join(ground.place, AREA_NAME))).toBe(false)
  })

  it('that the store is on as well, in another subvolume, lands', async () => {
    execFileSync('rmdir', [ground.base])
    subvolume(ground.base)
    sh(TREE, ground.base)
    const store = new TestStore(ground.place)
    for (const folder of ['journal', 'staging', 'trash']) mkdirSync(join(store.root, folder), { mode: 0o700 })
    const committer = new WorkerCommitter(store, () => new Date())
    try {
      const branch = await store.fork([ground.base])
      branch.record = { ...branch.record, createdAt: new Date().toISOString() }
      await landAndRevert(ground.base, branch, committer, {
        diff: () => new LayerDiffer(store).diff(branch.record),
        work: (act) => ground.work(branch, act),
      })
    } finally {
      await committer.close()
    }
  })

  it('that is below the base lands, together with what is above it', async () => {
    mkdirSync(join(ground.base, 'deep'))
    subvolume(join(ground.base, 'deep/inner'))
    sh(`${TREE}; cd deep/inner; ${TREE}`, ground.base)
    const branch = await ground.fork()
    await landAndRevert(
      ground.base,
      branch,
      ground.committer,
      ways(branch),
      `${WORK}; cd deep/inner; ${WORK}`,
    )
  })
})

describe('a base whose directories belong to a project', () => {
  const it = needs(root, missingFor('xfs'))
  const ground = new CommitGround('xfs')
  const projectOf = (path: string): number => withFd(openRoot(path), (fd) => getProject(fd).project)

  it('lands, all in its project, and is taken back', async () => {
    withFd(openRoot(ground.base), (fd) => setProject(fd, 77))
    sh(TREE, ground.base)
    const branch = await ground.fork()
    await landAndRevert(ground.base, branch, ground.committer, {
      diff: () => ground.diff(branch),
      work: (act) => ground.work(branch, act),
    })
    expect(projectOf(join(ground.base, 'made'))).toBe(77)
  })

  it('of which a file is in another one is refused as a whole', async () => {
    sh(TREE, ground.base)
    withFd(openRoot(ground.base), (fd) => setProject(fd, 77))
    const branch = await ground.fork()
    const before = describeTree(ground.base)
    ground.work(branch, (view) => sh('echo a > fresh; echo more >> plain', view))
    await expect(ground.commit(branch)).rejects.toMatchObject({
      code: 'kernel-refused',
      hint: expect.stringContaining('another project'),
    })
    expect([describeTree(ground.base), ground.journal]).toEqual([before, []])
  })
})

describe('a directory that is mounted', () => {
  const it = needs(root)
  const ground = new CommitGround()

  it('in two places of a base does not wait for its own lock, and lands', async () => {
    const shared = join(ground.place, 'shared')
    sh(`mkdir ${shared} one two; echo old > ${shared}/file`, ground.base)
    const bases = [ground.base, join(ground.base, 'one'), join(ground.base, 'two')]
    for (const place of bases.slice(1)) execFileSync('mount', ['--bind', shared, place])
    try {
      const branch = await ground.store.fork(bases.slice(0, 1))
      branch.record = { ...branch.record, createdAt: new Date().toISOString() }
      expect(branch.record.bases.map(({ path }) => path)).toEqual(bases)
      sh('echo top > top', branch.mount(0))
      branch.unmount()
      await ground.commit(branch)
      expect(readdirSync(ground.base).sort()).toEqual(['one', 'top', 'two'])
    } finally {
      for (const place of bases.slice(1)) execFileSync('umount', [place])
    }
  })

  it('over one of the base, from the same filesystem, gets nothing of what the branch did there', async () => {
    const other = join(ground.place, 'other')
    sh(`mkdir ${other} d`, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo secret > d/new', view))
    const changeset = await ground.diff(branch)
    execFileSync('mount', ['--bind', other, join(ground.base, 'd')])
    try {
      await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'base-invalid' })
      expect(readdirSync(other)).toEqual([])
    } finally {
      execFileSync('umount', [join(ground.base, 'd')])
    }
  })
})

describe('what commits keep in the root of a filesystem', () => {
  const it = needs(root, missingFor('ext4'))

  it.each([
    ['its mode', `chmod 755 ${AREA_NAME}`],
    ['the time of something in it', `touch ${AREA_NAME}/c*/*`],
    ['something new in it', `echo x > ${AREA_NAME}/mine`],
  ])('is not changed by a branch over that root: %s', async (_, act) => {
    const place = makePlace('ext4')
    const store = new TestStore()
    for (const folder of ['journal', 'staging', 'trash']) mkdirSync(join(store.root, folder), { mode: 0o700 })
    const committer = new WorkerCommitter(store, () => new Date())
    const area = join(place.path, AREA_NAME)
    try {
      sh('echo old > file', place.path)
      const inBranch = async (command: string): Promise<unknown> => {
        const branch = await store.fork([place.path])
        branch.record = { ...branch.record, createdAt: new Date().toISOString() }
        sh(command, branch.mount())
        branch.unmount()
        const changeset = await new LayerDiffer(store).diff(branch.record)
        return committer.commit(branch.record, changeset, NO_HOOKS)
      }
      await inBranch('echo new > file')
      const before = describeTree(area)
      await expect(inBranch(act)).rejects.toMatchObject({
        code: 'denied',
        message: `"${area}" belongs to puzzled; a branch cannot change it`,
      })
      expect(describeTree(area)).toEqual(before)
      expect(lstatSync(area).mode & 0o777).toBe(0o700)
      // A name like it elsewhere is an ordinary one.
      await inBranch(`mkdir -p d/${AREA_NAME}; echo x > d/${AREA_NAME}/x`)
    } finally {
      await committer.close()
      store.remove()
      place.remove()
    }
  })
})
