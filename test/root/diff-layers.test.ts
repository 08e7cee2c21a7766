import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { LayerDiffer } from '../../daemon/branch/diff.ts'
import { layerMounts } from '../../daemon/branch/overlay.ts'
import type { Changeset } from '../../daemon/contract/changeset.ts'
import * as kernel from '../../daemon/kernel/paths.ts'
import { setXattr } from '../../daemon/kernel/xattr.ts'
import { needs, root } from '../tier/needs.ts'
import { at, DiffGround, lines, sha256, write } from './diff-ground.ts'

const it = needs(root)
const ground = new DiffGround()

describe('what blocks', () => {
  const rules = (changeset: Changeset, path: string): string[] =>
    at(changeset, path).findings.map((finding) => finding.rule)

  it('devices, fifos and sockets', async () => {
    const changeset = await ground.diffOf((view) => {
      const dir = kernel.openRoot(view)
      kernel.mknodat(dir, 'fifo', kernel.S.IFIFO | 0o644)
      kernel.mknodat(dir, 'socket', kernel.S.IFSOCK | 0o644)
      kernel.mknodat(dir, 'device', kernel.S.IFCHR | 0o644, 1, 3)
      kernel.close(dir)
    })
    for (const name of ['fifo', 'socket', 'device']) expect(rules(changeset, name)).toEqual(['special-file'])
    expect(at(changeset, 'fifo').findings[0]?.message).toContain('a fifo')
  })

  it('forged overlay attributes, which delete nothing', async () => {
    fs.mkdirSync(join(ground.base, 'd'))
    write(join(ground.base, 'd/kept'), 'x')
    const changeset = await ground.diffOf((view) => {
      const dir = kernel.openRoot(view)
      setXattr({ dir, name: 'd' }, 'user.overlay.opaque', Buffer.from('y'))
      kernel.close(dir)
      write(join(view, 'f'), '')
    })
    expect(rules(changeset, 'd')).toEqual(['overlay-xattr'])
    expect(lines(changeset)).not.toContain('delete d/kept')
    const upper = kernel.openRoot(join(ground.store.directory('branch-1'), 'layers/001/0/upper'))
    setXattr({ dir: upper, name: 'f' }, 'trusted.overlay.redirect', Buffer.from('/etc'))
    kernel.close(upper)
    expect(rules(await ground.diffOf(() => undefined), 'f')).toEqual(['overlay-xattr'])
  })

  it('trees that are deeper than a review', async () => {
    const changeset = await ground.diffOf((view) => {
      let dir = kernel.openRoot(view)
      for (let depth = 0; depth < 1100; depth++) {
        kernel.mkdirat(dir, 'd', 0o755)
        const next = kernel.openat(dir, 'd', kernel.O.RDONLY | kernel.O.DIRECTORY)
        kernel.close(dir)
        dir = next
      }
      kernel.close(dir)
    })
    expect(changeset.changes.at(-1)?.findings.map((finding) => finding.rule)).toEqual(['too-deep'])
  })
})

describe('hard links', () => {
  it('of new files are one group', async () => {
    const changeset = await ground.diffOf((view) => {
      write(join(view, 'a'), 'x')
      fs.linkSync(join(view, 'a'), join(view, 'b'))
      write(join(view, 'c'), 'x')
    })
    expect(changeset.changes.map((change) => change.hardlink)).toEqual([undefined, 1, 1, undefined])
  })

  it('bring the unchanged file that they were made from', async () => {
    write(join(ground.base, 'a'), 'x')
    const changeset = await ground.diffOf((view) => fs.linkSync(join(view, 'a'), join(view, 'b')))
    expect(lines(changeset)).toEqual(['metadata ', 'metadata a', 'add b'])
    expect(at(changeset, 'a')).toMatchObject({ hardlink: 1, new: { sha256: sha256('x') } })
  })

  it('that came and went leave no group', async () => {
    write(join(ground.base, 'a'), 'x')
    const changeset = await ground.diffOf((view) => {
      fs.linkSync(join(view, 'a'), join(view, 'b'))
      fs.unlinkSync(join(view, 'b'))
      write(join(view, 'c'), '')
      fs.linkSync(join(view, 'c'), join(view, 'd'))
      fs.unlinkSync(join(view, 'd'))
    })
    expect(lines(changeset)).toEqual(['metadata ', 'add c'])
    expect(at(changeset, 'c').hardlink).toBeUndefined()
  })
})

describe('contents', () => {
  it('of nothing and of 10 GB of holes are hashed right', { timeout: 600_000 }, async () => {
    const size = 10 * 1024 ** 3
    const zeros = Buffer.alloc(1 << 20)
    const expected = createHash('sha256')
    for (let block = 0; block < 10 * 1024; block++)
      expected.update(block === 5000 ? Buffer.concat([Buffer.from('middle'), zeros.subarray(6)]) : zeros)
    const changeset = await ground.diffOf((view) => {
      write(join(view, 'empty'), '')
      const fd = fs.openSync(join(view, 'sparse'), 'w')
      fs.ftruncateSync(fd, size)
      fs.writeSync(fd, 'middle', 5000 * 1024 * 1024)
      fs.closeSync(fd)
    })
    expect(at(changeset, 'empty').new?.sha256).toBe(sha256(''))
    expect(at(changeset, 'sparse').new).toMatchObject({ size, sha256: expected.digest('hex') })
  })

  it('of one path are read without mounting, and never through a symlink', async () => {
    fs.mkdirSync(join(ground.base, 'd'))
    write(join(ground.base, 'd/f'), 'before')
    await ground.diffOf((view) => {
      write(join(view, 'd/f'), 'after!')
      fs.symlinkSync('/etc', join(view, 'etc'))
    })
    const differ = new LayerDiffer(ground.store)
    const { record } = await ground.fork()
    const pair = await differ.content(record, 0, Buffer.from('d/f'), 3, null)
    expect(pair).toEqual({
      before: { bytes: Buffer.from('bef'), size: 6 },
      after: { bytes: Buffer.from('aft'), size: 6 },
    })
    expect(await differ.content(record, 0, Buffer.from('etc/passwd'), 3, null)).toEqual({
      before: null,
      after: null,
    })
    await expect(differ.content(record, 0, Buffer.from('../x'), 3, null)).rejects.toMatchObject({
      code: 'usage',
    })
  })

  it('of one path are those of a path that the branch touches, and what its requester may read', async () => {
    const requester = { uid: 1000, gid: 1000, groups: [1000], name: 'dev' }
    fs.mkdirSync(join(ground.base, 'gone'))
    for (const name of ['untouched', 'secret', 'own', 'public', 'gone/f'])
      write(join(ground.base, name), name)
    for (const name of ['secret', 'own']) fs.chmodSync(join(ground.base, name), 0o600)
    fs.chownSync(join(ground.base, 'own'), requester.uid, requester.gid)
    await ground.diffOf((view) => {
      for (const name of ['secret', 'own', 'public', 'gone']) fs.rmSync(join(view, name), { recursive: true })
    })
    const { record } = await ground.fork()
    const differ = new LayerDiffer(ground.store)
    const sideBefore = async (name: string, reader: typeof requester | null) =>
      (await differ.content(record, 0, Buffer.from(name), 99, reader)).before
    expect(await sideBefore('public', requester)).toEqual({ bytes: Buffer.from('public'), size: 6 })
    expect(await sideBefore('own', requester)).toEqual({ bytes: Buffer.from('own'), size: 3 })
    expect(await sideBefore('gone/f', requester)).toEqual({ bytes: Buffer.from('gone/f'), size: 6 })
    expect(await sideBefore('secret', null)).toEqual({ bytes: Buffer.from('secret'), size: 6 })
    expect(await sideBefore('secret', requester)).toEqual({ bytes: Buffer.alloc(0), size: 6, withheld: true })
    await expect(sideBefore('untouched', null)).rejects.toMatchObject({ code: 'usage' })
  })
})

describe('a branch that changed nothing', () => {
  it('is the same whether it is judged, which needs no thread, or only looked at', async () => {
    const differ = new LayerDiffer(ground.store)
    const { record } = await ground.fork()
    const both = async () => [
      await differ.diff({ ...record, state: 'reviewing' }),
      await differ.diff({ ...record, state: 'stopped' }),
    ]
    const [judged, looked] = await both()
    expect(judged?.changes).toEqual([])
    expect(judged).toEqual(looked)
    // The root itself is looked at all the same.
    const [mount] = layerMounts(record, ground.store.directory(record.id))
    fs.chmodSync(mount?.upper ?? '', 0o711)
    const [changed, seen] = await both()
    expect(changed?.changes).toHaveLength(1)
    expect(changed).toEqual(seen)
    fs.rmSync(mount?.upper ?? '', { recursive: true })
    for (const state of ['reviewing', 'stopped'] as const)
      await expect(differ.diff({ ...record, state })).rejects.toMatchObject({ code: 'kernel-refused' })
  })
})

describe('several layers', () => {
  it('are one change, and what came and went between them is none', async () => {
    fs.mkdirSync(join(ground.base, 'd'))
    for (const name of ['d/a', 'd/b', 'c']) write(join(ground.base, name), name)
    const branch = await ground.fork()
    await ground.diffOf((view) => {
      write(join(view, 'd/a'), 'one')
      write(join(view, 'd/n'), 'new')
      write(join(view, 'gone'), 'soon')
      fs.unlinkSync(join(view, 'c'))
    })
    await branch.checkpoint()
    await ground.diffOf((view) => {
      write(join(view, 'd/a'), 'two')
      fs.unlinkSync(join(view, 'gone'))
      fs.unlinkSync(join(view, 'd/b'))
    })
    await branch.checkpoint()
    const changeset = await ground.diffOf((view) => write(join(view, 'c'), 'again'))
    expect(lines(changeset)).toEqual(['modify c', 'metadata d', 'modify d/a', 'delete d/b', 'add d/n'])
    expect(at(changeset, 'd/a').new?.sha256).toBe(sha256('two'))
  })

  it('replace a directory of a layer below', async () => {
    fs.mkdirSync(join(ground.base, 'd'))
    for (const name of ['d/a', 'd/b']) write(join(ground.base, name), name)
    const branch = await ground.fork()
    await ground.diffOf((view) => write(join(view, 'd/m'), 'middle'))
    await branch.checkpoint()
    await ground.diffOf((view) => fs.rmSync(join(view, 'd'), { recursive: true }))
    await branch.checkpoint()
    const changeset = await ground.diffOf((view) => {
      fs.mkdirSync(join(view, 'd'))
      write(join(view, 'd/b'), 'B')
    })
    expect(lines(changeset)).toEqual(['metadata d', 'delete d/a', 'modify d/b'])
  })
})
