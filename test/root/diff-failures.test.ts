import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { readBothSides } from '../../daemon/branch/diff-sides.ts'
import { DiffSink } from '../../daemon/branch/diff-sink.ts'
import { DiffWalk } from '../../daemon/branch/diff-walk.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { asFileUser } from '../../daemon/kernel/credentials.ts'
import { close, openRoot } from '../../daemon/kernel/paths.ts'
import { needs, root } from '../tier/needs.ts'
import { temporary } from './commit-ground.ts'

const it = needs(root)
const SOMEBODY = { uid: 64_321, gid: 64_321, groups: [64_321] }
const FORKED = { mode: 0o755, uid: 0, gid: 0, xattrs: [] }

let place: string | undefined
const at = (name: string): string => join(place ?? '', name)
beforeEach(() => {
  place = temporary('walk-')
  chmodSync(place, 0o755)
  for (const name of ['base/a/b', 'upper/a/b', 'lower/a/b']) mkdirSync(at(name), { recursive: true })
})
afterEach(() => {
  if (place !== undefined) rmSync(place, { recursive: true, force: true })
})

/** Directories that this process has open below the place. */
const openBelow = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(at('')) ? [target] : []
    } catch {
      // The descriptor of this very list.
      return []
    }
  })

it.each(['base/a/b', 'upper/a/b', 'lower/a/b'])('a walk that fails at %s leaves nothing open', (closed) => {
  const [base, ...uppers] = ['base', 'upper', 'lower'].map((name) => openRoot(at(name)))
  const before = openBelow()
  chmodSync(at(closed), 0o700)
  const walk = new DiffWalk(
    0,
    new DiffSink(
      [at('base')],
      () => undefined,
      () => undefined,
    ),
  )
  const walked = () => asFileUser(SOMEBODY, () => walk.run(uppers, base ?? -1, FORKED))
  expect(walked).toThrow(/EACCES/)
  expect(openBelow()).toEqual(before)
  for (const fd of [base, ...uppers]) close(fd ?? -1)
})

it('a look at the contents of a file of which a layer is gone leaves nothing open', () => {
  const mount = { base: at('base'), lowers: [at('lower'), at('base')], upper: at('upper'), work: at('work') }
  writeFileSync(at('upper/a/file'), 'new')
  rmSync(at('lower'), { recursive: true })
  expect(() => readBothSides(mount, Buffer.from('a/file'), 100, null)).toThrow(/ENOENT/)
  expect(openBelow()).toEqual([])
})

it('a path that is longer than the kernel takes, and ends on the way, leaves nothing open', () => {
  const [disk, top] = [new KernelDisk(), openRoot(at('base'))]
  const long = Array.from({ length: 30 }, () => 'x'.repeat(250))
  let dir = disk.openDir(top, Buffer.alloc(0))
  for (const name of long.slice(0, 20)) {
    disk.makeDir(dir, Buffer.from(name), 0o755)
    const next = disk.openDir(dir, Buffer.from(name))
    disk.close(dir)
    dir = next
  }
  disk.close(dir)
  expect(() => disk.openDir(top, Buffer.from(long.join('/')))).toThrow(/ENOENT/)
  expect(openBelow()).toEqual([at('base')])
  disk.close(top)
  execFileSync('rm', ['-rf', at('base')])
})
