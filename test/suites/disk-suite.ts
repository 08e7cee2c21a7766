import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Dir, type Disk, NO_NAME, nameOf } from '../../daemon/lib/disk.ts'
import { errnoOf } from '../../daemon/lib/errors.ts'

const code = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    const { errnoName, code } = error as { errnoName?: string; code?: string }
    return errnoName ?? code ?? String(error)
  }
  return 'nothing'
}

/** What every `Disk` must do. `make` gives one with an empty directory at the returned path. */
export function describeDisk(name: string, make: () => { disk: Disk; path: string }): void {
  describe(`${name} is a Disk`, () => {
    let disk: Disk
    let root: Dir
    const a = nameOf('a')
    const b = nameOf('b')
    const put = (at: Uint8Array, text: string): void => disk.writeAt(root, at, 0, Buffer.from(text))

    beforeEach(() => {
      const made = make()
      disk = made.disk
      root = disk.openRoot(made.path)
    })

    it('writes at offsets and reads the whole', () => {
      put(a, 'hello')
      disk.writeAt(root, a, 5, Buffer.from(' world'))
      expect(disk.readFile(root, a).toString()).toBe('hello world')
      expect(disk.digest(root, a)).toBe(createHash('sha256').update('hello world').digest('hex'))
      disk.fsync(root, a)
      disk.fsync(root, NO_NAME)
      disk.syncfs(root)
    })

    it('syncs beside what else is done, and says with which errno it could not', async () => {
      put(a, 'hello')
      await disk.syncfsBeside(root)
      const dir = disk.openDir(root, NO_NAME)
      const none = dir + 1_000_000
      disk.close(dir)
      const failed = await disk.syncfsBeside(none).catch((error: unknown) => error)
      expect(errnoOf(failed)).toBe('EBADF')
    })

    it('moves only to a free name, exchanges only with a taken one', () => {
      put(a, 'A')
      put(b, 'B')
      expect(code(() => disk.rename(root, a, root, b, 'move'))).toBe('EEXIST')
      disk.rename(root, a, root, b, 'exchange')
      expect(disk.readFile(root, a).toString()).toBe('B')
      expect(code(() => disk.rename(root, a, root, nameOf('c'), 'exchange'))).toBe('ENOENT')
      disk.rename(root, a, root, b, 'replace')
      expect(disk.list(root).map(String)).toEqual(['b'])
      expect(disk.readFile(root, b).toString()).toBe('B')
    })

    it('keeps the inode through a rename and tells directories from files', () => {
      disk.makeDir(root, a, 0o700)
      const { ino, kind } = disk.stat(root, a) ?? {}
      disk.rename(root, a, root, b, 'move')
      expect(disk.stat(root, b)).toMatchObject({ ino, kind: 'dir' })
      expect(kind).toBe('dir')
      expect(disk.stat(root, a)).toBeNull()
      const dir = disk.openDir(root, b)
      expect(disk.stat(dir, NO_NAME)?.ino).toBe(ino)
      expect(disk.mountOf(dir)).toBe(disk.mountOf(root))
      disk.close(dir)
    })

    it('never goes through a symlink', () => {
      disk.makeDir(root, a, 0o700)
      disk.makeLink(root, b, a)
      expect(code(() => disk.openDir(root, b))).toBe('ELOOP')
      expect(disk.stat(root, b)).toMatchObject({ kind: 'symlink', size: 1 })
      expect(disk.readLink(root, b).toString()).toBe('a')
      expect(code(() => disk.openDir(root, nameOf('none')))).toBe('ENOENT')
    })

    it('opens beneath by path', () => {
      disk.makeDir(root, a, 0o700)
      const dir = disk.openDir(root, a)
      disk.makeDir(dir, b, 0o700)
      const below = disk.openDir(root, nameOf('a/b'))
      expect(disk.stat(below, NO_NAME)?.ino).toBe(disk.stat(dir, b)?.ino)
      disk.close(below)
      disk.close(dir)
    })

    it('copies content and says its digest', () => {
      put(a, 'content')
      const copied = disk.copyFile(root, a, root, b)
      expect(copied.sha256).toBe(disk.digest(root, a))
      expect(disk.readFile(root, b).toString()).toBe('content')
      expect(disk.stat(root, b)).toMatchObject({ mode: 0o600, ino: copied.ino })
      expect(code(() => disk.copyFile(root, a, root, b))).toBe('EEXIST')
    })

    it.each([0o644, 0o6751, 0o000])('copies a file with its metadata, mode %o', (mode) => {
      put(a, 'content')
      const { uid = 0, gid = 0 } = disk.stat(root, a) ?? {}
      const attribute = { name: 'user.test', value: Buffer.from([0, 255]) }
      // Nobody but root may add one to a file that its owner cannot write.
      for (const xattrs of process.geteuid?.() === 0 || mode !== 0 ? [[], [attribute]] : [[]]) {
        const name = nameOf(`copy-${xattrs.length}`)
        const { ino } = disk.copyFile(root, a, root, name, { mode, uid, gid, mtimeNs: 5n, xattrs })
        expect(disk.stat(root, name)).toMatchObject({ ino, mode, mtimeNs: 5n, size: 7 })
        expect(disk.xattrs(root, name)).toEqual(xattrs)
      }
    })

    it('links files', () => {
      put(a, 'one')
      disk.hardLink(root, a, root, b)
      expect(disk.stat(root, b)).toMatchObject({ ino: disk.stat(root, a)?.ino, nlink: 2 })
    })

    it('sets metadata exactly, to the nanosecond', () => {
      put(a, 'x')
      const { uid = 0, gid = 0 } = disk.stat(root, a) ?? {}
      const xattrs = [{ name: 'user.test', value: Buffer.from([0, 255]) }]
      disk.setMeta(root, a, { mode: 0o640, uid, gid, mtimeNs: 1_234_567_890_123_456_789n, xattrs })
      expect(disk.stat(root, a)).toMatchObject({ mode: 0o640, mtimeNs: 1_234_567_890_123_456_789n })
      expect(disk.xattrs(root, a)).toEqual(xattrs)
      disk.setMeta(root, a, { mode: 0o600, uid, gid, mtimeNs: 5n, xattrs: [] })
      expect(disk.xattrs(root, a)).toEqual([])
      expect(disk.stat(root, a)?.mtimeNs).toBe(5n)
      disk.setTime(root, a, 7n)
      expect(disk.stat(root, a)?.mtimeNs).toBe(7n)
      disk.setTime(root, NO_NAME, 9n)
      expect(disk.stat(root, NO_NAME)?.mtimeNs).toBe(9n)
    })

    it('removes files and empty directories only as what they are', () => {
      disk.makeDir(root, a, 0o700)
      put(b, 'x')
      expect(code(() => disk.unlink(root, a))).toBe('EISDIR')
      expect(code(() => disk.removeDir(root, b))).toBe('ENOTDIR')
      const dir = disk.openDir(root, a)
      disk.writeAt(dir, b, 0, Buffer.from('y'))
      expect(code(() => disk.removeDir(root, a))).toBe('ENOTEMPTY')
      disk.unlink(dir, b)
      disk.close(dir)
      disk.removeDir(root, a)
      disk.unlink(root, b)
      expect(disk.list(root)).toEqual([])
    })

    it('takes names as bytes', () => {
      const odd = Buffer.from([0x0a, 0xff, 0x80])
      put(odd, 'odd')
      expect(disk.list(root)).toEqual([odd])
      expect(disk.readFile(root, odd).toString()).toBe('odd')
    })
  })
}
