import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { readMounts } from '../../daemon/kernel/mount.ts'
import { plainProfile } from '../fixtures/records.ts'
import { needs, root } from '../tier/needs.ts'
import { type TestBranch, TestStore } from './branches.ts'
import { FILESYSTEMS, makePlace, missingFor, type Place } from './filesystems.ts'

let store: TestStore
let places: Place[]
let branches: TestBranch[]
beforeEach(() => {
  if (root !== undefined) return
  store = new TestStore()
  places = []
  branches = []
})
afterEach(() => {
  if (root !== undefined) return
  for (const branch of branches) branch.unmount()
  for (const place of places) place.remove()
  store.remove()
})

const fork = async (...bases: string[]): Promise<TestBranch> => {
  const branch = await store.fork(bases)
  branches.push(branch)
  return branch
}
const place = (...kind: Parameters<typeof makePlace>): string => {
  const made = makePlace(...kind)
  places.push(made)
  return made.path
}

describe('a branch over a base', () => {
  for (const kind of FILESYSTEMS) {
    needs(root, missingFor(kind))(`on ${kind} keeps writes away from it`, async () => {
      const base = place(kind)
      mkdirSync(join(base, 'dir'))
      writeFileSync(join(base, 'dir/file'), 'base')
      writeFileSync(join(base, 'gone'), 'base')
      const branch = await fork(base)
      const view = branch.mount()
      writeFileSync(join(view, 'dir/file'), 'branch')
      writeFileSync(join(view, 'new'), 'branch')
      unlinkSync(join(view, 'gone'))
      expect(readFileSync(join(base, 'dir/file'), 'utf8')).toBe('base')
      expect(readdirSync(base).filter((name) => name !== 'lost+found')).toEqual(['dir', 'gone'])
      expect(readdirSync(view).filter((name) => name !== 'lost+found')).toEqual(['dir', 'new'])
    })
  }

  needs(root)('looks like the base at its root', async () => {
    const base = place('host')
    chownSync(base, 1234, 4321)
    chmodSync(base, 0o2751)
    execFileSync('setfattr', ['-n', 'user.mark', '-v', 'x', base])
    utimesSync(base, 1000, 1000)
    const view = (await fork(base)).mount()
    const stat = statSync(view)
    expect([stat.uid, stat.gid, stat.mode & 0o7777, stat.mtimeMs]).toEqual([1234, 4321, 0o2751, 1_000_000])
    expect(execFileSync('getfattr', ['-d', view], { encoding: 'utf8' })).toContain('user.mark="x"')
  })

  needs(root)('is mounted with the options that the file side rests on', async () => {
    const branch = await fork(place('host'))
    const view = branch.mount()
    const mount = readMounts().find((entry) => entry.target.toString() === view)
    expect(mount?.options).toEqual(expect.arrayContaining(['nosuid', 'nodev']))
    for (const option of ['redirect_dir=nofollow', 'lowerdir+='])
      expect(mount?.superOptions).toContain(option)
    expect(mount?.superOptions).not.toMatch(/metacopy=on|index=on|redirect_dir=on|nfs_export=on|userxattr/)
  })

  needs(root)('hides its layers from everybody else', async () => {
    const branch = await fork(place('host'))
    const layers = join(store.directory(branch.record.id), 'layers')
    expect(statSync(layers).mode & 0o777).toBe(0o700)
  })

  needs(root)('survives a path of more than 255 bytes with commas and colons', async () => {
    const deep = join(place('host'), 'a,b:c\\d'.repeat(20), 'x'.repeat(200))
    mkdirSync(deep, { recursive: true })
    writeFileSync(join(deep, 'f'), 'x')
    expect(readdirSync((await fork(deep)).mount())).toEqual(['f'])
  })

  needs(root)('goes on in a new layer after a checkpoint, and the old one stays', async () => {
    const base = place('host')
    writeFileSync(join(base, 'f'), 'base')
    const branch = await fork(base)
    writeFileSync(join(branch.mount(), 'f'), 'one')
    await branch.checkpoint()
    const view = branch.mount()
    expect(readFileSync(join(view, 'f'), 'utf8')).toBe('one')
    unlinkSync(join(view, 'f'))
    expect(branch.record.layers).toBe(2)
    const first = join(store.directory(branch.record.id), 'layers/001/0/upper/f')
    expect(readFileSync(first, 'utf8')).toBe('one')
    expect(existsSync(join(branch.mount(0, 'view'), 'f'))).toBe(false)
  })
})

describe('mounts below a base', () => {
  needs(root)(
    'become bases of their own; what cannot be written is named as read-only, what is the kernel’s as hidden',
    async () => {
      const base = place('host')
      for (const name of ['disk', 'frozen', 'proc']) mkdirSync(join(base, name))
      const inner = place('tmpfs')
      writeFileSync(join(inner, 'inside'), 'x')
      const mounted: string[] = []
      const mount = (...args: string[]): void => {
        execFileSync('mount', args)
        mounted.push(args.at(-1) ?? '')
      }
      try {
        mount('--bind', inner, join(base, 'disk'))
        mount('-t', 'tmpfs', '-o', 'ro', 'none', join(base, 'frozen'))
        mount('-t', 'proc', 'none', join(base, 'proc'))
        const { record } = await fork(base)
        expect(record.bases.map((entry) => [entry.path, entry.filesystem])).toEqual([
          [base, expect.any(String)],
          [join(base, 'disk'), 'tmpfs'],
        ])
        expect(record.bases[0]?.nested).toEqual([
          { path: join(base, 'disk'), handling: 'overlay' },
          { path: join(base, 'frozen'), handling: 'read-only' },
          { path: join(base, 'proc'), handling: 'hidden' },
        ])
      } finally {
        for (const target of mounted.reverse()) execFileSync('umount', [target])
      }
    },
  )
})

describe('a base', () => {
  const refused = async (...bases: string[]): Promise<string> => {
    try {
      await store.fork(bases)
    } catch (error) {
      const { code, message } = error as { code: string; message: string }
      return `${code}: ${message}`
    }
    return 'forked'
  }

  needs(root)('that cannot be one is refused by name', async () => {
    const base = place('host')
    writeFileSync(join(base, 'file'), '')
    mkdirSync(join(base, 'sub'))
    const cases: [string[], RegExp][] = [
      [[join(base, 'missing')], /missing" does not exist/],
      [[join(base, 'file')], /file" is not a directory/],
      [['relative'], /not an absolute path/],
      [['/'], /root of the system/],
      [[store.root], /is the store itself/],
      [[join(store.root, '..')], /contains the store/],
      [[mkdtempSync(join(store.root, 'in-'))], /lies inside the store/],
      [[base, join(base, 'sub')], /covered by base/],
      [[base, base], /covered by base/],
      [['/proc/self'], /on proc/],
      [[], /at least one base/],
    ]
    for (const [bases, message] of cases) {
      const answer = await refused(...bases)
      expect(answer).toMatch(/^base-invalid: /)
      expect(answer).toMatch(message)
    }
    expect(await refused(base)).toBe('forked')
  })

  needs(root)('is known by its real path, also when named through a symlink', async () => {
    const base = place('host')
    const link = join(mkdtempSync(join(tmpdir(), 'link-')), 'to')
    symlinkSync(base, link)
    expect((await fork(link)).record.bases[0]?.path).toBe(base)
    rmSync(join(link, '..'), { recursive: true })
  })

  needs(root)('that has another filesystem on it now is refused', async () => {
    const base = place('host')
    const branch = await fork(base)
    execFileSync('mount', ['-t', 'tmpfs', 'none', base])
    try {
      await expect(store.layers.mounts(branch.record)).rejects.toMatchObject({ code: 'base-invalid' })
    } finally {
      execFileSync('umount', [base])
    }
    await expect(store.layers.mounts(branch.record)).resolves.toHaveLength(1)
  })
})

describe('a store without project quota', () => {
  needs(root)('refuses a profile that requires it', async () => {
    const own = new TestStore(place('tmpfs'))
    const limits = { budgets: { limits: { disk: 1 << 20 }, atLimit: 'freeze' as const } }
    const strict = plainProfile({ ...limits, require: ['project-quota'] })
    await expect(own.fork([place('host')], strict)).rejects.toMatchObject({ code: 'feature-missing' })
  })
})
