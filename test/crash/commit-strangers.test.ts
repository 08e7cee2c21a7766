import { describe, expect, it } from 'vitest'
import { land } from '../../daemon/branch/commit.ts'
import { recoverCommits } from '../../daemon/branch/recover.ts'
import type { Dir } from '../../daemon/lib/disk.ts'
import { NO_NAME, nameOf } from '../../daemon/lib/disk.ts'
import { COMMIT, makeWorld, NO_HOOKS, treesOf } from '../fakes/commit-world.ts'
import type { ModelDisk } from '../fakes/model-disk.ts'

/** People go on working in a base while a commit lands, and between a crash and its recovery. Nothing of theirs is lost. */

const AT = '2026-01-01T00:00:01.000Z'
const META = { mode: 0o644, uid: 1000, gid: 1000, mtimeNs: 88n, xattrs: [] }
const base = (disk: ModelDisk, below = ''): Dir => disk.openDir(disk.openRoot('/one/base'), nameOf(below))
const write = (disk: ModelDisk, dir: Dir, name: string): void => {
  disk.writeAt(dir, nameOf(name), 0, Buffer.from('theirs'))
  disk.setMeta(dir, nameOf(name), META)
}

/** Lets `work` happen behind the last comparison with the base, right before the first rename. */
async function landWhile(
  work: (disk: ModelDisk) => void,
): Promise<{ disk: ModelDisk; heard: string; old: string }> {
  const { disk, job, context } = makeWorld()
  const old = treesOf(disk).two
  const hooks = { ...NO_HOOKS, afterIntent: async () => work(disk) }
  const heard = await land(context, job, hooks).then(
    () => 'committed',
    (error: { code?: string }) => error.code ?? String(error),
  )
  return { disk, heard, old }
}

describe('what somebody does at the last moment', () => {
  it('in a directory that leaves stops the commit: a new file', async () => {
    const { disk, heard, old } = await landWhile((now) => write(now, base(now, 'tree'), 'stranger'))
    expect(heard).toBe('conflict')
    expect(disk.readFile(base(disk, 'tree'), nameOf('stranger')).toString()).toBe('theirs')
    expect(disk.readFile(base(disk, 'tree'), nameOf('a')).toString()).toBe('a in tree')
    expect(treesOf(disk).two).toBe(old)
  })

  it('in a directory that leaves stops the commit: another content', async () => {
    const { disk, heard } = await landWhile((now) => write(now, base(now, 'tree'), 'a'))
    expect(heard).toBe('conflict')
    expect(disk.readFile(base(disk, 'tree'), nameOf('a')).toString()).toContain('theirs')
  })

  it('to a file of which only the mode changes is a conflict, and the commit is undone, not stuck', async () => {
    const { disk, heard, old } = await landWhile((now) => {
      now.unlink(base(now), nameOf('meta'))
      write(now, base(now), 'meta')
    })
    expect(heard).toBe('conflict')
    expect(disk.readFile(base(disk), nameOf('meta')).toString()).toBe('theirs')
    expect(disk.stat(base(disk), nameOf('new'))).toBeNull()
    expect(treesOf(disk).two).toBe(old)
  })

  it('to the content of such a file is one too', async () => {
    const { disk, heard } = await landWhile((now) => write(now, base(now), 'meta'))
    expect(heard).toBe('conflict')
    expect(disk.stat(base(disk), nameOf('meta'))).toMatchObject({ mode: META.mode, mtimeNs: META.mtimeNs })
  })

  it('to the mode of a directory in which entries land stays', async () => {
    const { disk, heard } = await landWhile((now) =>
      now.setMeta(base(now), NO_NAME, { ...META, mode: 0o700 }),
    )
    expect(heard).toBe('committed')
    expect(disk.stat(base(disk), NO_NAME)).toMatchObject({ mode: 0o700, mtimeNs: 900n })
  })
})

describe('what somebody did between a crash and its recovery', () => {
  /** Power goes where everything is in place and DONE is not written yet; then `work`; then the filesystem refuses. */
  async function recoverBehind(
    work: (disk: ModelDisk) => void,
  ): Promise<{ disk: ModelDisk; fates: string[] }> {
    const { disk, job, context } = makeWorld()
    let renames = 0
    disk.beforeStep = (_, call) => {
      if (call.startsWith('rename') && ++renames > 8) disk.cutPower()
    }
    await land(context, job, NO_HOOKS).catch(() => undefined)
    disk.beforeStep = undefined
    disk.restart(() => 'kept')
    expect(disk.stat(base(disk), nameOf('new'))).not.toBeNull()
    work(disk)
    disk.settle()
    disk.beforeStep = (_, call) => {
      if (call === 'time') throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
    }
    const fates = recoverCommits(disk, '/store/journal', AT).map(({ fate }) => fate)
    disk.beforeStep = undefined
    return { disk, fates }
  }

  it('nothing: the commit is undone, as it was before', async () => {
    const { disk } = await recoverBehind(() => undefined)
    expect(disk.stat(base(disk), nameOf('new'))).toBeNull()
  })

  it('in a directory that the commit had brought is not undone with it: the commit is stuck, and goes on later', async () => {
    const { disk, fates } = await recoverBehind((now) => write(now, base(now, 'new/deep'), 'notes'))
    expect(fates).toEqual(['stuck'])
    expect(disk.readFile(base(disk, 'new/deep'), nameOf('notes')).toString()).toBe('theirs')
    recoverCommits(disk, '/store/journal', AT, new Set([COMMIT]))
    expect(disk.readFile(base(disk, 'new/deep'), nameOf('notes')).toString()).toBe('theirs')
  })

  it('to a file that the commit had changed is not undone with it either', async () => {
    const { disk, fates } = await recoverBehind((now) => write(now, base(now), 'edit'))
    expect(fates).toEqual(['stuck'])
    expect(disk.readFile(base(disk), nameOf('edit')).toString()).toContain('theirs')
  })
})
