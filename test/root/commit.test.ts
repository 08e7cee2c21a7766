import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { selectChanges } from '../../daemon/branch/select.ts'
import { O, openat, openRoot, withFd } from '../../daemon/kernel/paths.ts'
import { getXattr, setXattr } from '../../daemon/kernel/xattr.ts'
import { plainProfile } from '../fixtures/records.ts'
import { root } from '../tier/needs.ts'
import { CommitGround, describeTree, NO_HOOKS, sh } from './commit-ground.ts'
import { FILESYSTEMS, missingFor } from './filesystems.ts'

const BEFORE = `
  mkdir -p d/sub gone/deep empty; echo one > f; echo two > d/sub/x; echo three > gone/deep/y
  echo four > links; ln links links2; ln -s f s; echo run > tool; chmod 755 tool; mkdir shared; chmod 2775 shared
  dd if=/dev/zero of=sparse bs=1 count=0 seek=20M status=none; echo end >> sparse; echo swap > filedir; mkdir dirfile; echo q > dirfile/q`

const CHANGES = `
  echo more >> f; echo fresh > new; mkdir -p a/b/c; echo deep > a/b/c/file; ln -s ../f a/s; ln a/b/c/file a/hard
  rm -r gone; rmdir empty; chmod 600 d/sub/x; touch -d '2020-01-01 00:00:00.123456789' d; rm s; ln -s new s
  rm filedir; mkdir filedir; echo in > filedir/in; rm -r dirfile; echo file > dirfile
  printf 'x' > "$(printf 'odd\\nname \\377')"; : > zero; truncate -s 30M big; echo tail >> big
  echo changed > links; rm -r d/sub; mkdir d/sub; echo only > d/sub/only; echo z > d/z; mkdir shared/made; echo m > shared/m`

describe.skipIf(root)('a commit', () => {
  describe.each(FILESYSTEMS)('on %s', (kind) => {
    describe.skipIf(missingFor(kind))('(made here)', () => {
      const ground = new CommitGround(kind)

      it('makes the base exactly what the agent saw, and leaves nothing behind', async () => {
        sh(BEFORE, ground.base)
        const branch = await ground.fork()
        const seen = ground.work(branch, (view) => sh(CHANGES, view))
        const landed = await ground.commit(branch)
        expect(describeTree(ground.base)).toEqual(seen)
        expect(landed.warnings).toEqual([
          { path: 'links', message: '1 other hard link keeps its old content' },
        ])
        expect(ground.journal).toEqual([`${landed.commit}.changes`, `${landed.commit}.log`])
        expect(await ground.diff(branch)).toMatchObject({ changes: [] })
      })

      it('is taken back by a revert, and that by another one', async () => {
        sh(BEFORE, ground.base)
        const old = describeTree(ground.base)
        const branch = await ground.fork()
        const seen = ground.work(branch, (view) => sh(CHANGES, view))
        const landed = await ground.commit(branch)
        const reverted = await ground.committer.revert(landed.commit, branch.record.requester)
        // The old inode had two names; the name that was replaced comes back as a file of its own.
        const single = (lines: string[]): string[] => lines.map((line) => line.replace(/ inode#\d+/, ''))
        expect(single(describeTree(ground.base))).toEqual(single(old))
        await ground.committer.revert(reverted.commit, branch.record.requester)
        expect(single(describeTree(ground.base))).toEqual(single(seen))
      })
    })
  })
})

describe.skipIf(root)('a commit is refused', () => {
  const ground = new CommitGround()

  it('where the base changed meanwhile, with every path named, and changes nothing', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh(CHANGES, view))
    sh('sleep 0.02; echo editor > f; echo mine > gone/deep/added; echo there > new', ground.base)
    const before = describeTree(ground.base)
    const refused = await ground
      .commit(branch)
      .catch((error: { code: string; data: { conflicts: { path: string }[] } }) => error)
    expect(refused).toMatchObject({ code: 'conflict' })
    const paths = 'data' in refused ? refused.data.conflicts.map(({ path }) => path) : []
    expect(paths).toEqual(expect.arrayContaining(['f', 'new', 'gone/deep/added']))
    expect(describeTree(ground.base)).toEqual(before)
    expect(ground.staged).toEqual([])
    expect(ground.journal).toEqual([])
  })

  it('where the base changed between the review and the commit', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh(CHANGES, view))
    const changeset = await ground.diff(branch)
    sh('echo later >> new-in-base; rm tool; echo editor >> f', ground.base)
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'conflict' })
  })

  it('for the second of two branches that change one file', async () => {
    sh(BEFORE, ground.base)
    const [first, second] = [await ground.fork(), await ground.fork()]
    ground.work(first, (view) => sh('echo first > f', view))
    ground.work(second, (view) => sh('echo second > f', view))
    sh('sleep 0.02', ground.base)
    const changesets = [await ground.diff(first), await ground.diff(second)] as const
    await ground.commit(first, changesets[0])
    await expect(ground.commit(second, changesets[1])).rejects.toMatchObject({ code: 'conflict' })
    expect(readFileSync(join(ground.base, 'f'), 'utf8')).toBe('first\n')
  })

  it('where the branch was written to after the review', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo reviewed > f', view))
    const changeset = await ground.diff(branch)
    ground.work(branch, (view) => sh('echo evil > also', view))
    const before = describeTree(ground.base)
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'changed-since-review' })
    ground.work(branch, (view) => sh('rm also; echo other > f', view))
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'changed-since-review' })
    expect(describeTree(ground.base)).toEqual(before)
    // The layers are compared after everything was staged.
    expect(ground.journal).toEqual([])
    expect(readdirSync(join(ground.store.root, 'staging'))).toEqual([])
  })

  it('where the approved digest is not that of the changes', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo a > f; echo b > g', view))
    const changeset = await ground.diff(branch)
    const fewer = { ...changeset, changes: changeset.changes.slice(1) }
    await expect(ground.commit(branch, fewer)).rejects.toMatchObject({ code: 'changed-since-review' })
  })

  it('where a hook before INTENT refuses, and where one after it does', async () => {
    sh(BEFORE, ground.base)
    const before = describeTree(ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh(CHANGES, view))
    const changeset = await ground.diff(branch)
    const refuse = async (): Promise<void> => {
      throw new Error('audit is down')
    }
    for (const hooks of [
      { ...NO_HOOKS, beforeIntent: refuse },
      { ...NO_HOOKS, afterIntent: refuse },
    ])
      await expect(ground.committer.commit(branch.record, changeset, hooks)).rejects.toThrow('audit is down')
    expect(describeTree(ground.base)).toEqual(before)
    expect(ground.journal).toEqual([])
    expect(ground.staged).toEqual([])
  })

  it('where the base is gone, or a component became a symlink', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo x > d/new', view))
    const changeset = await ground.diff(branch)
    sh('mv d elsewhere; ln -s elsewhere d', ground.base)
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'conflict' })
    sh('rm d; mv elsewhere d', ground.base)
    sh('mv base other; ln -s other base', ground.place)
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'base-invalid' })
  })
})

const USER = { uid: 12345, gid: 12345, groups: [12345], name: 'user' }

describe.skipIf(root)('rights', () => {
  const ground = new CommitGround()
  const writable = (): void => {
    // The temporary folder of a test is closed to other users.
    for (let at = ground.base; at.startsWith(tmpdir()); at = dirname(at)) chmodSync(at, 0o755)
    sh('chown 12345:12345 .; echo mine > own; chown 12345:12345 own', ground.base)
  }

  it('land what the requester could have written', async () => {
    writable()
    sh('mkdir open; chmod 1777 open; chmod 755 .', ground.base)
    const branch = await ground.fork({ requester: USER })
    ground.work(branch, (view) =>
      sh(
        'echo n > n; chown 12345:12345 n; echo more >> own; echo t > open/t; chown 12345:12345 open/t',
        view,
      ),
    )
    await ground.commit(branch)
    expect(readFileSync(join(ground.base, 'own'), 'utf8')).toBe('mine\nmore\n')
    expect(statSync(join(ground.base, 'open/t')).uid).toBe(12345)
  })

  it.each([
    [
      'a directory of root',
      'mkdir rootdir',
      'echo x > rootdir/x; chown 12345 rootdir/x; chgrp 12345 rootdir/x',
    ],
    ['a file of root', 'echo r > r', 'echo x >> r'],
    ['another owner', 'true', 'echo x > x'],
    ['a group of others', 'true', 'echo x > x; chown 12345:4444 x'],
    ["somebody else's mode", 'echo r > r', 'chmod 777 r'],
    ["somebody else's file in a sticky directory", 'mkdir st; echo r > st/r; chmod 1777 st', 'rm st/r'],
    [
      'what lies behind a closed directory',
      'mkdir -p shut/open; chown 12345 shut/open; chmod 700 shut',
      'echo x > shut/open/x; chown 12345:12345 shut/open/x',
    ],
    [
      'the files of a directory of root',
      'mkdir -p own2; chown 12345 own2; mkdir own2/deep; echo x > own2/deep/x',
      'rm -r own2',
    ],
  ])('refuse %s', async (_, before, act) => {
    writable()
    sh(before, ground.base)
    const branch = await ground.fork({ requester: USER })
    ground.work(branch, (view) => sh(act, view))
    const tree = describeTree(ground.base)
    await expect(ground.commit(branch)).rejects.toMatchObject({ code: 'not-writable' })
    expect(describeTree(ground.base)).toEqual(tree)
  })

  it('do not let setuid, setgid and capabilities land, and say so', async () => {
    sh('echo x > was; chmod 4755 was; mkdir g; chmod 2775 g; echo x > had', ground.base)
    giveCapability(join(ground.base, 'had'))
    const branch = await ground.fork()
    ground.work(branch, (view) => {
      sh(
        'cp /bin/true su; chmod 6755 su; touch g/file; chmod 4755 was; touch was; mkdir sg; chmod 2755 sg',
        view,
      )
      sh('cp /bin/true cap; echo x > had', view)
      for (const name of ['cap', 'had']) giveCapability(join(view, name))
    })
    const landed = await ground.commit(branch)
    expect(statSync(join(ground.base, 'su')).mode & 0o7000).toBe(0)
    expect(statSync(join(ground.base, 'sg')).mode & 0o7000).toBe(0)
    expect(statSync(join(ground.base, 'g')).mode & 0o7000).toBe(0o2000)
    expect(statSync(join(ground.base, 'was')).mode & 0o7000).toBe(0o4000)
    expect(capabilities(join(ground.base, 'cap'))).toBeUndefined()
    // The same capability on the same content was there before.
    expect(capabilities(join(ground.base, 'had'))).toEqual(CAPABILITY)
    expect(landed.warnings.map(({ path, message }) => `${path}: ${message}`).sort()).toEqual([
      'cap: file capabilities were removed',
      'sg: the setgid bit was removed',
      'su: the setgid bit was removed',
      'su: the setuid bit was removed',
    ])
  })

  it('do not reach the other names of a file: each keeps what it had, with a warning', async () => {
    sh('echo one > f; ln f g; ln f h; mkdir d; ln f d/i; echo m > m; ln m n', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo agent >> f; chmod 600 m', view))
    const landed = await ground.commit(branch)
    const other = (links: number): string =>
      `${links} other hard link${links === 1 ? ' keeps its' : 's keep their'}`
    expect(landed.warnings).toEqual([
      { path: 'f', message: `${other(3)} old content` },
      { path: 'm', message: `${other(1)} old content` },
    ])
    expect(sh('cat f g h d/i', ground.base)).toBe('one\nagent\none\none\none\n')
    expect(sh('stat -c %a m n', ground.base)).toBe('600\n644\n')
  })

  it('let setuid land where the profile says so', async () => {
    const profile = plainProfile()
    const branch = await ground.fork({}, { ...profile, gate: { ...profile.gate, allowSetuid: true } })
    ground.work(branch, (view) => sh('cp /bin/true su; chmod 4755 su', view))
    await ground.commit(branch)
    expect(statSync(join(ground.base, 'su')).mode & 0o7000).toBe(0o4000)
  })
})

/** cap_net_raw=ep as the kernel stores it: revision 2 with the effective bit. */
const CAPABILITY = Buffer.from('0100000200200000000000000000000000000000', 'hex')
const giveCapability = (path: string): void =>
  withFd(openRoot(dirname(path)), (dir) =>
    withFd(openat(dir, basename(path), O.RDONLY), (fd) => setXattr(fd, 'security.capability', CAPABILITY)),
  )
const capabilities = (path: string): Uint8Array | undefined =>
  withFd(openRoot(dirname(path)), (dir) =>
    getXattr({ dir, name: Buffer.from(basename(path)) }, 'security.capability'),
  )

describe.skipIf(root)('a part', () => {
  const ground = new CommitGround()

  it('lands alone, and the rest after it', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo one >> f; echo two > g; mkdir h; echo three > h/i', view))
    const all = await ground.diff(branch)
    branch.record = { ...branch.record, digest: all.digest }
    const part = selectChanges(all, { only: ['g'], except: [] })
    const landed = await ground.commit(branch, part)
    expect(readFileSync(join(ground.base, 'g'), 'utf8')).toBe('two\n')
    expect(readFileSync(join(ground.base, 'f'), 'utf8')).toBe('one\n')
    branch.record = {
      ...branch.record,
      commit: { id: landed.commit, at: new Date().toISOString(), digest: part.digest },
    }
    const rest = await ground.diff(branch)
    expect(rest.changes.map(({ path }) => String(Buffer.from(path)))).toEqual(['', 'f', 'h', 'h/i'])
    branch.record = { ...branch.record, digest: rest.digest }
    await ground.commit(branch, rest)
    expect(readFileSync(join(ground.base, 'h/i'), 'utf8')).toBe('three\n')
  })
})

describe.skipIf(root)('a revert', () => {
  const ground = new CommitGround()

  it('is refused where the base went on, or the commit is unknown', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo new > f; mkdir dir; echo a > dir/a', view))
    const { commit } = await ground.commit(branch)
    writeFileSync(join(ground.base, 'dir', 'theirs'), 'x')
    await expect(ground.committer.revert(commit, branch.record.requester)).rejects.toMatchObject({
      code: 'conflict',
    })
    sh('rm dir/theirs; echo edited > f', ground.base)
    await expect(ground.committer.revert(commit, branch.record.requester)).rejects.toMatchObject({
      code: 'conflict',
    })
    await expect(ground.committer.revert('c999999', branch.record.requester)).rejects.toMatchObject({
      code: 'branch-unknown',
    })
    expect(readFileSync(join(ground.base, 'f'), 'utf8')).toBe('edited\n')
  })

  it('is possible until retention removes the old versions', async () => {
    sh(BEFORE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo new > f', view))
    const { commit } = await ground.commit(branch)
    const kept = await ground.committer.collect({ count: 1, ageMs: 1e12, bytes: 1e12 })
    expect(kept.commits).toEqual([])
    const gone = await ground.committer.collect({ count: 0, ageMs: 1e12, bytes: 1e12 })
    expect(gone.commits).toEqual([commit])
    expect(gone.bytes).toBeGreaterThan(0)
    expect([...ground.journal, ...ground.staged]).toEqual([])
    await expect(ground.committer.revert(commit, branch.record.requester)).rejects.toMatchObject({
      code: 'branch-unknown',
    })
  })
})

describe.skipIf(root)('the trash', () => {
  const ground = new CommitGround()

  it('takes whatever agents leave: deep, locked, immutable', async () => {
    const doomed = join(ground.store.root, 'trash', 'branch')
    mkdirSync(doomed)
    symlinkSync(ground.base, join(doomed, 'link'))
    writeFileSync(join(ground.base, 'stays'), 'x')
    deepTree(doomed, 60)
    sh(
      'mkdir locked; echo x > locked/x; chmod 000 locked; echo i > im; chattr +i im 2>/dev/null || true',
      doomed,
    )
    expect(await ground.committer.emptyTrash()).toMatchObject({ branches: 1 })
    expect(sh('ls trash', ground.store.root)).toBe('')
    expect(readFileSync(join(ground.base, 'stays'), 'utf8')).toBe('x')
  })
})

/** Deeper than any path can name. */
function deepTree(path: string, depth: number): void {
  const disk = new KernelDisk()
  const name = Buffer.from('x'.repeat(200))
  let at = disk.openRoot(path)
  for (let level = 0; level < depth; level++) {
    disk.makeDir(at, name, 0o700)
    const next = disk.openDir(at, name)
    disk.close(at)
    at = next
  }
  disk.writeAt(at, Buffer.from('file'), 0, Buffer.from('deep'))
  disk.close(at)
}
