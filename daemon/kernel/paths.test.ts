import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { copyFileRange, fstatfs, nextData, pread } from './file-data.ts'
import { listDirectory } from './getdents.ts'
import * as paths from './paths.ts'
import { isDirectory, isSymlink, statAt, statFd, tryStatAt } from './statx.ts'
import { getXattr, listXattrs, removeXattr, setXattr } from './xattr.ts'

let root: string
let dir: number
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'paths-'))
  dir = paths.openRoot(root)
})
afterEach(() => {
  paths.close(dir)
  rmSync(root, { recursive: true })
})

const failure = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    return (error as { errnoName: string }).errnoName
  }
  return 'none'
}

describe('openat2', () => {
  it('stays beneath its directory and follows no symlink', () => {
    paths.mkdirat(dir, 'in', 0o755)
    writeFileSync(join(root, 'in/file'), 'x')
    paths.symlinkat('/etc', dir, 'out')
    paths.symlinkat('in', dir, 'alias')
    expect(failure(() => paths.openat2(dir, '../', paths.O.RDONLY))).toBe('EXDEV')
    expect(failure(() => paths.openat2(dir, '/etc', paths.O.RDONLY))).toBe('EXDEV')
    expect(failure(() => paths.openat2(dir, 'out/passwd', paths.O.RDONLY))).toBe('ELOOP')
    expect(failure(() => paths.openat2(dir, 'alias/file', paths.O.RDONLY))).toBe('ELOOP')
    paths.withFd(paths.openat2(dir, 'in/file', paths.O.RDONLY), (fd) => expect(statFd(fd).size).toBe(1))
    paths.withFd(paths.openat2(dir, 'alias/file', paths.O.RDONLY, 0), (fd) => expect(fd).toBeGreaterThan(2))
  })
})

describe('openat', () => {
  it.each(['', '.', '..', 'a/b', '/etc'])('takes one component, not %j', (name) =>
    expect(failure(() => paths.openat(dir, name, paths.O.RDONLY))).toBe('EINVAL'),
  )

  it('does not follow the last symlink', () => {
    paths.symlinkat('/etc/passwd', dir, 'link')
    expect(failure(() => paths.openat(dir, 'link', paths.O.RDONLY))).toBe('ELOOP')
  })
})

describe('names', () => {
  it('are bytes: a name that is not UTF-8 comes back as it went in', () => {
    const name = Buffer.from([0x61, 0xff, 0x0a, 0x62])
    paths.mkdirat(dir, name, 0o700)
    const [entry] = paths.withFd(paths.openRoot(root), listDirectory)
    expect(entry?.name).toEqual(name)
    expect(isDirectory({ mode: entry?.type ?? 0 })).toBe(true)
    expect(isDirectory(statAt(dir, name))).toBe(true)
    paths.unlinkat(dir, name, paths.AT.REMOVEDIR)
    expect(tryStatAt(dir, name)).toBeUndefined()
  })

  it('of a large directory are all listed', () => {
    for (let i = 0; i < 3000; i++) writeFileSync(join(root, `a-rather-long-name-${i}`), '')
    const listed = paths.withFd(paths.openat2(dir, '.', paths.O.RDONLY), listDirectory)
    expect(listed.map((entry) => entry.name.toString()).sort()).toEqual(readdirSync(root).sort())
  })
})

describe('renameat2', () => {
  it('refuses to replace, and exchanges', () => {
    writeFileSync(join(root, 'a'), 'A')
    writeFileSync(join(root, 'b'), 'B')
    expect(failure(() => paths.renameat2(dir, 'a', dir, 'b'))).toBe('EEXIST')
    paths.renameat2(dir, 'a', dir, 'b', paths.RENAME.EXCHANGE)
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('B')
  })
})

describe('inodes', () => {
  it('are described as Node describes them, with exact times', () => {
    writeFileSync(join(root, 'f'), 'hello')
    paths.utimensat(dir, 'f', 1_600_000_000_123_456_789n)
    const stat = statAt(dir, 'f')
    const node = statSync(join(root, 'f'), { bigint: true })
    expect(stat.mtimeNs).toBe(1_600_000_000_123_456_789n)
    expect([stat.ino, stat.dev, stat.mode, stat.size]).toEqual(
      [node.ino, node.dev, node.mode, node.size].map(Number),
    )
    expect(stat.ctimeNs).toBe(node.ctimeNs)
  })

  it('take times before 1970', () => {
    paths.symlinkat('x', dir, 'l')
    paths.utimensat(dir, 'l', -1n)
    expect(statAt(dir, 'l').mtimeNs).toBe(-1n)
    expect(isSymlink(statAt(dir, 'l'))).toBe(true)
    expect(paths.readlinkat(dir, 'l').toString()).toBe('x')
  })

  it('change mode and gain names', () => {
    writeFileSync(join(root, 'f'), '')
    paths.fchmodat(dir, 'f', 0o4711)
    paths.linkat(dir, 'f', dir, 'g')
    expect(lstatSync(join(root, 'g')).mode & 0o7777).toBe(0o4711)
    expect(statAt(dir, 'f').nlink).toBe(2)
  })
})

describe('extended attributes', () => {
  it('are set, listed, read and removed by descriptor and by name', () => {
    writeFileSync(join(root, 'f'), '')
    const name = { dir, name: 'f' }
    setXattr(name, 'user.b', Buffer.from([0, 255]))
    paths.withFd(paths.openat(dir, 'f', paths.O.RDONLY), (fd) => {
      setXattr(fd, 'user.a', Buffer.alloc(0))
      expect(listXattrs(fd).filter((key) => key.startsWith('user.'))).toEqual(['user.a', 'user.b'])
      expect(getXattr(fd, 'user.b')).toEqual(Buffer.from([0, 255]))
    })
    expect(failure(() => setXattr(name, 'user.a', Buffer.alloc(1), true))).toBe('EEXIST')
    expect(removeXattr(name, 'user.a')).toBe(true)
    expect(removeXattr(name, 'user.a')).toBe(false)
    expect(getXattr(name, 'user.a')).toBeUndefined()
  })

  it('of a symlink are its own', () => {
    writeFileSync(join(root, 'f'), '')
    paths.symlinkat('f', dir, 'l')
    setXattr({ dir, name: 'f' }, 'user.a', Buffer.from('x'))
    expect(getXattr({ dir, name: 'l' }, 'user.a')).toBeUndefined()
    expect(failure(() => setXattr({ dir, name: 'l' }, 'user.a', Buffer.from('y')))).toBe('EPERM')
  })
})

describe('file data', () => {
  it('finds the data of a sparse file and copies it', () => {
    writeFileSync(join(root, 'sparse'), '')
    const fd = paths.openat(dir, 'sparse', paths.O.RDWR)
    writeFileSync(fd, 'start')
    paths.withFd(paths.openat(dir, 'copy', paths.O.RDWR | paths.O.CREAT, 0o600), (copy) => {
      expect(copyFileRange(fd, 1, copy, 0, 100)).toBe(4)
      const bytes = Buffer.alloc(10)
      expect(pread(copy, bytes, 0)).toBe(4)
      expect(bytes.toString('utf8', 0, 4)).toBe('tart')
    })
    expect(nextData(fd, 0, 5)).toEqual({ start: 0, end: 5 })
    expect(nextData(fd, 5, 5)).toBeUndefined()
    paths.close(fd)
  })

  it('knows its filesystem', () => expect(fstatfs(dir).blockSize).toBeGreaterThan(0))
})
