import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { LayerDiffer } from '../../daemon/branch/diff.ts'
import type { Changeset } from '../../daemon/contract/changeset.ts'
import { PROFILE } from '../../daemon/sandbox/plan.fixture.ts'
import { run } from '../root/branch.fixture.ts'
import { TestStore } from '../root/branches.ts'
import { lines } from '../root/diff-ground.ts'
import { roundsOf } from '../threats/counts.ts'
import { needs, program, root } from '../tier/needs.ts'
import { launcher } from './harness.ts'

const check = needs(root, program('python3'), program('tar'))
const OWNER = 1000
/** Times 100 bytes of name: far beyond PATH_MAX. */
const { rounds: DEPTH } = roundsOf('PUZZLED_ESCAPE_DEPTH')

interface Done {
  readonly changeset: Changeset
  readonly output: string
  /** Rules of the findings by path. */
  readonly findings: Readonly<Record<string, readonly string[]>>
}

/** Lets a real agent loose on a base, and says what the review would show. */
async function review(prepare: (base: string) => void, argv: readonly string[]): Promise<Done> {
  const store = new TestStore()
  const base = mkdtempSync(join(tmpdir(), 'base-'))
  try {
    for (const path of [tmpdir(), base]) chmodSync(path, 0o755)
    prepare(base)
    chownSync(base, OWNER, OWNER)
    const { record } = await store.fork([base], PROFILE)
    const asked = { ...record, requester: { uid: OWNER, gid: OWNER, groups: [], name: 'tester' } }
    const mounts = await store.layers.mounts(asked)
    const ran = await run(launcher, { record: asked, mounts, base, upper: '', remove: () => undefined }, argv)
    expect([ran.errors, ran.exit.code]).toEqual(['', 0])
    const changeset = await new LayerDiffer(store).diff(asked)
    const findings = changeset.changes
      .filter((change) => change.findings.length > 0)
      .map((change) => [Buffer.from(change.path).toString(), change.findings.map((finding) => finding.rule)])
    return { changeset, output: ran.output, findings: Object.fromEntries(findings) }
  } finally {
    store.remove()
    rmSync(base, { recursive: true, force: true })
  }
}

const python = (text: string): string[] => ['python3', '-c', text]
const nothing = (): void => undefined

describe('S15 special files in the layer', () => {
  check('devices cannot be made, by tar neither; fifos and sockets block the commit', async () => {
    const { output, findings } = await review(
      nothing,
      python(`
import io, os, socket, stat, tarfile
archive = tarfile.open('t.tar', 'w')
for name, kind in (('chr', tarfile.CHRTYPE), ('blk', tarfile.BLKTYPE)):
    info = tarfile.TarInfo(name); info.type = kind; info.devmajor, info.devminor = 1, 5; archive.addfile(info)
archive.close()
print(os.system('tar -xf t.tar 2>/dev/null') != 0, os.path.lexists('chr'), os.path.lexists('blk'))
os.mkfifo('pipe')
s = socket.socket(socket.AF_UNIX); s.bind('sock')
`),
    )
    expect(output).toBe('True False False\n')
    expect(findings).toEqual({ pipe: ['special-file'], sock: ['special-file'] })
  })
})

describe('S17 forged deletions', () => {
  check(
    'a name that begins with .wh. is a file, an opaque mark of the agent blocks and deletes nothing',
    async () => {
      const { changeset, findings } = await review(
        (base) => {
          writeFileSync(join(base, 'passwd'), 'kept')
          mkdirSync(join(base, 'd'))
          writeFileSync(join(base, 'd', 'kept'), 'kept')
          chownSync(join(base, 'd'), OWNER, OWNER)
        },
        python(`
import os
open('.wh.passwd', 'w').close()
open('d/.wh..wh..opq', 'w').close()
os.setxattr('d', 'user.overlay.opaque', b'y')
for name in ('trusted.overlay.opaque', 'security.capability'):
    try: os.setxattr('d', name, b'y'); raise SystemExit(name)
    except OSError: pass
`),
      )
      expect(lines(changeset).filter((line) => line.startsWith('delete'))).toEqual([])
      expect(lines(changeset)).toEqual(expect.arrayContaining(['add .wh.passwd', 'add d/.wh..wh..opq']))
      expect(findings).toEqual({ d: ['overlay-xattr'] })
    },
  )
})

describe('S18 replaced directories', () => {
  check('what was removed stays removed when the directory comes back', async () => {
    const { changeset } = await review(
      (base) => {
        mkdirSync(join(base, 'd', 'deep'), { recursive: true })
        for (const name of ['d/old', 'd/deep/old']) writeFileSync(join(base, name), 'old')
        for (const name of ['d', 'd/deep']) chownSync(join(base, name), OWNER, OWNER)
      },
      ['sh', '-euc', 'rm -r d; mkdir d; echo n >d/new; mkdir d/deep; echo n >d/deep/new'],
    )
    const said = lines(changeset).filter((line) => /^(add|delete)/.test(line))
    expect(said).toEqual(['add d/deep/new', 'delete d/deep/old', 'add d/new', 'delete d/old'])
  })
})

describe('S20 bombs', () => {
  check(
    'depth, odd names, loops, holes and link farms are reviewed in bounded memory and removed',
    async () => {
      const before = process.memoryUsage().rss
      const { changeset } = await review(
        nothing,
        python(`
import os
open(b'\\xff\\xfe\\n', 'w').close()
open('n' * 255, 'w').close()
os.symlink('loop', 'loop'); os.symlink('/etc/shadow', 'out')
with open('sparse', 'w') as f: f.truncate(1 << 30)
open('one', 'w').close()
for n in range(300): os.link('one', 'link%d' % n)
for n in range(20000): os.close(os.open('f%d' % n, os.O_CREAT | os.O_WRONLY))
for n in range(${DEPTH}): os.mkdir('d' * 100); os.chdir('d' * 100)
`),
      )
      const names = changeset.changes.map((change) => Buffer.from(change.path))
      expect(names.some((name) => name.equals(Buffer.from([0xff, 0xfe, 0x0a])))).toBe(true)
      expect(names.filter((name) => /^f\d+$/.test(name.toString()))).toHaveLength(20000)
      expect(names.filter((name) => name.toString().startsWith('link'))).toHaveLength(300)
      expect(Math.max(...names.map((name) => name.length))).toBeGreaterThan(4096)
      expect(process.memoryUsage().rss - before).toBeLessThan(400 * 2 ** 20)
      expect(existsSync('/etc/shadow')).toBe(true)
    },
  )
})
