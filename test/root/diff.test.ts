import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { digestOf, totalsOf } from '../../daemon/branch/changeset.ts'
import * as kernel from '../../daemon/kernel/paths.ts'
import { needs, root } from '../tier/needs.ts'
import { at, DiffGround, lines, sha256, write } from './diff-ground.ts'

const it = needs(root)
const ground = new DiffGround()

describe('a diff names', () => {
  it('nothing where nothing was done', async () => {
    write(join(ground.base, 'f'), 'x')
    const changeset = await ground.diffOf((view) => void fs.readFileSync(join(view, 'f')))
    expect(lines(changeset)).toEqual([])
    expect(changeset.digest).toBe(digestOf(changeset))
  })

  it('additions, modifications and deletions with both sides', async () => {
    for (const name of ['keep', 'change', 'drop']) write(join(ground.base, name), name)
    const changeset = await ground.diffOf((view) => {
      write(join(view, 'change'), 'CHANGE')
      write(join(view, 'new'), 'new')
      fs.unlinkSync(join(view, 'drop'))
    })
    expect(lines(changeset)).toEqual(['metadata ', 'modify change', 'delete drop', 'add new'])
    expect(at(changeset, 'change').old?.sha256).toBe(sha256('change'))
    expect(at(changeset, 'change').new?.sha256).toBe(sha256('CHANGE'))
    expect(at(changeset, 'drop').old?.sha256).toBe(sha256('drop'))
    const { ino, mtimeNs } = fs.statSync(join(ground.base, 'change'), { bigint: true })
    expect(at(changeset, 'change').identity).toMatchObject({ ino: Number(ino), mtimeNs, nlink: 1 })
    expect(changeset.totals).toEqual({ files: 3, bytes: 9, additions: 1, modifications: 1, deletions: 1 })
    expect(changeset.totals).toEqual(totalsOf(changeset.changes))
  })

  it('nothing where a file was opened for writing and left alone', async () => {
    write(join(ground.base, 'f'), 'x'.repeat(300_000))
    write(join(ground.base, 'g'), 'x')
    const changeset = await ground.diffOf((view) => {
      for (const name of ['f', 'g']) fs.closeSync(fs.openSync(join(view, name), 'r+'))
    })
    expect(fs.existsSync(join(ground.store.directory('branch-1'), 'layers/001/0/upper/f'))).toBe(true)
    expect(lines(changeset)).toEqual([])
  })

  it('content that changed behind the same size and the same time', async () => {
    for (const [name, size] of [
      ['small', 10],
      ['large', 3_000_000],
    ] as const) {
      write(join(ground.base, name), 'a'.repeat(size))
      fs.utimesSync(join(ground.base, name), 1000, 1000)
    }
    const changeset = await ground.diffOf((view) => {
      for (const [name, size] of [
        ['small', 10],
        ['large', 3_000_000],
      ] as const) {
        write(join(view, name), `${'a'.repeat(size - 1)}b`)
        fs.utimesSync(join(view, name), 1000, 1000)
      }
    })
    expect(lines(changeset)).toEqual(['modify large', 'modify small'])
    expect(at(changeset, 'large').new?.sha256).toBe(sha256(`${'a'.repeat(2_999_999)}b`))
  })

  it('metadata alone: mode, owner, time, attributes and ACLs', async () => {
    for (const name of ['mode', 'owner', 'time', 'xattr', 'acl']) write(join(ground.base, name), name)
    fs.mkdirSync(join(ground.base, 'dir'))
    fs.symlinkSync('x', join(ground.base, 'link'))
    const changeset = await ground.diffOf((view) => {
      fs.chmodSync(join(view, 'mode'), 0o4755)
      fs.chownSync(join(view, 'owner'), 12, 34)
      fs.utimesSync(join(view, 'time'), 5, 5)
      execFileSync('setfattr', ['-n', 'user.a', '-v', 'b', join(view, 'xattr')])
      execFileSync('setfacl', ['-m', 'u:1234:r', join(view, 'acl')])
      fs.chmodSync(join(view, 'dir'), 0o700)
      fs.lchownSync(join(view, 'link'), 1, 1)
    })
    expect(lines(changeset)).toEqual(
      ['acl', 'dir', 'link', 'mode', 'owner', 'time', 'xattr'].map((name) => `metadata ${name}`),
    )
    expect(at(changeset, 'mode').new?.mode).toBe(0o4755)
    expect(at(changeset, 'mode').new?.sha256).toBe(sha256('mode'))
    expect(at(changeset, 'time').new?.mtimeNs).toBe(5_000_000_000n)
    expect(at(changeset, 'xattr').new?.xattrs).toEqual([{ name: 'user.a', value: Buffer.from('b') }])
    expect(at(changeset, 'acl').new?.xattrs.map((xattr) => xattr.name)).toEqual(['system.posix_acl_access'])
  })
})

describe('a replaced node', () => {
  const make: Record<string, (path: string) => void> = {
    file: (path) => write(path, 'file'),
    dir: (path) => {
      fs.mkdirSync(path)
      write(join(path, 'in'), 'in')
    },
    symlink: (path) => fs.symlinkSync('target', path),
  }
  for (const from of Object.keys(make))
    for (const to of Object.keys(make))
      it(`was a ${from} and is a ${to}`, async () => {
        make[from]?.(join(ground.base, 'n'))
        const changeset = await ground.diffOf((view) => {
          fs.rmSync(join(view, 'n'), { recursive: true })
          make[to]?.(join(view, 'n'))
        })
        const inside = { file: [], symlink: [], dir: [from === 'dir' ? 'metadata n/in' : 'add n/in'] }[to]
        const gone = from === 'dir' && to !== 'dir' ? ['delete n/in'] : []
        const self = from !== to ? ['replace n'] : from === 'dir' ? [] : ['metadata n']
        expect(lines(changeset).filter((line) => line !== 'metadata ')).toEqual([
          ...self,
          ...(inside ?? []),
          ...gone,
        ])
        if (from !== to)
          expect([at(changeset, 'n').old?.type, at(changeset, 'n').new?.type]).toEqual([from, to])
      })
})

describe('directories', () => {
  it('that were emptied and made again lose what was in them', async () => {
    fs.mkdirSync(join(ground.base, 'd/sub'), { recursive: true })
    for (const name of ['d/a', 'd/b', 'd/sub/c']) write(join(ground.base, name), name)
    const changeset = await ground.diffOf((view) => {
      fs.rmSync(join(view, 'd'), { recursive: true })
      fs.mkdirSync(join(view, 'd/sub'), { recursive: true })
      write(join(view, 'd/a'), 'other')
      write(join(view, 'd/sub/n'), 'n')
    })
    expect(lines(changeset)).toEqual([
      'metadata d',
      'modify d/a',
      'delete d/b',
      'metadata d/sub',
      'delete d/sub/c',
      'add d/sub/n',
    ])
  })

  it('that are empty count, and a time that follows an entry is not a file of the totals', async () => {
    fs.mkdirSync(join(ground.base, 'old'))
    const changeset = await ground.diffOf((view) => {
      fs.mkdirSync(join(view, 'empty'))
      fs.rmdirSync(join(view, 'old'))
    })
    expect(lines(changeset)).toEqual(['metadata ', 'add empty', 'delete old'])
    expect(changeset.totals.files).toBe(2)
  })

  it('in which a file came and went are unchanged', async () => {
    fs.mkdirSync(join(ground.base, 'd'))
    const changeset = await ground.diffOf((view) => {
      write(join(view, 'd/tmp'), 'x')
      fs.unlinkSync(join(view, 'd/tmp'))
    })
    expect(lines(changeset)).toEqual([])
  })

  it('whose root somebody else changes after the fork are not the branch’s change', async () => {
    await ground.fork()
    fs.chmodSync(ground.base, 0o711)
    expect(lines(await ground.diffOf((view) => write(join(view, 'n'), '')))).toEqual(['metadata ', 'add n'])
    expect((await ground.diffOf(() => undefined)).changes[0]?.new?.mode).toBe(0o711)
    const own = await ground.diffOf((view) => fs.chmodSync(view, 0o700))
    expect(own.changes[0]?.new?.mode).toBe(0o700)
  })
})

describe('names', () => {
  it('are bytes: not UTF-8, newlines, `.wh.`', async () => {
    const odd = Buffer.from([0x61, 0xff, 0x0a, 0x1b])
    write(join(ground.base, 'victim'), 'x')
    const changeset = await ground.diffOf((view) => {
      fs.writeFileSync(Buffer.concat([Buffer.from(`${view}/`), odd]), 'odd')
      write(join(view, '.wh.victim'), '')
      write(join(view, '.wh..wh..opq'), '')
    })
    expect(changeset.changes.map((change) => [change.kind, Buffer.from(change.path)])).toEqual([
      ['metadata', Buffer.alloc(0)],
      ['add', Buffer.from('.wh..wh..opq')],
      ['add', Buffer.from('.wh.victim')],
      ['add', odd],
    ])
  })

  it('make paths that are longer than PATH_MAX', async () => {
    const name = 'n'.repeat(200)
    const changeset = await ground.diffOf((view) => {
      let dir = kernel.openRoot(view)
      for (let depth = 0; depth < 40; depth++) {
        kernel.mkdirat(dir, name, 0o755)
        const next = kernel.openat(dir, name, kernel.O.RDONLY | kernel.O.DIRECTORY)
        kernel.close(dir)
        dir = next
      }
      kernel.close(kernel.openat(dir, 'leaf', kernel.O.WRONLY | kernel.O.CREAT, 0o644))
      kernel.close(dir)
    })
    expect(changeset.changes).toHaveLength(42)
    expect(changeset.changes.at(-1)?.path.length).toBe(40 * 201 + 4)
  })

  it('come in canonical order', async () => {
    const changeset = await ground.diffOf((view) => {
      fs.mkdirSync(join(view, 'a'))
      for (const name of ['a/z', 'a-b', 'a.b', 'ab', 'A']) write(join(view, name), '')
    })
    expect(lines(changeset).slice(1)).toEqual(['add A', 'add a', 'add a-b', 'add a.b', 'add a/z', 'add ab'])
  })
})
