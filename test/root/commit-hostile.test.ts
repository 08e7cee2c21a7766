import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { needs, root } from '../tier/needs.ts'
import { CommitGround, describeTree, NO_HOOKS, sh } from './commit-ground.ts'
import { missingFor } from './filesystems.ts'

/** What happens to a base, its filesystem or a layer between the review and the commit. */

const mount = (...args: string[]): void => {
  execFileSync('mount', args, { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } })
}

const LONG = 'n'.repeat(255)

describe.skipIf(root)('a filesystem that is another one when the commit comes', () => {
  const ground = new CommitGround('tmpfs')

  const areas = (): string[] => readdirSync(ground.place).filter((name) => name !== 'base')

  async function reviewed(work: string): Promise<() => Promise<unknown>> {
    sh('mkdir d; echo old > d/f', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh(work, view))
    const changeset = await ground.diff(branch)
    return () => ground.commit(branch, changeset)
  }

  it('read-only: refused, nothing changed; it lands when it can be written to again', async () => {
    const commit = await reviewed('echo new > d/f; echo more > d/g')
    const before = describeTree(ground.base)
    mount('-o', 'remount,ro', ground.place)
    await expect(commit()).rejects.toMatchObject({ code: 'not-writable' })
    expect(ground.journal).toEqual([])
    mount('-o', 'remount,rw', ground.place)
    expect(describeTree(ground.base)).toEqual(before)
    await commit()
    expect(sh('cat d/f d/g', ground.base)).toBe('new\nmore\n')
  })

  it('without a free inode: refused, nothing changed and nothing left over', async () => {
    const commit = await reviewed('mkdir -p many; for n in $(seq 60); do echo $n > many/$n; done')
    const before = describeTree(ground.base)
    const used = Number(sh('df --output=iused . | tail -1', ground.place))
    mount('-o', `remount,nr_inodes=${used + 30}`, ground.place)
    await expect(commit()).rejects.toMatchObject({ code: 'no-space' })
    expect(describeTree(ground.base)).toEqual(before)
    expect(ground.journal).toEqual([])
    for (const area of areas()) expect(readdirSync(join(ground.place, area))).toEqual([])
    mount('-o', 'remount,nr_inodes=4096', ground.place)
    await commit()
    expect(readdirSync(join(ground.base, 'many'))).toHaveLength(60)
  })

  it('mounted over the base: refused, and neither gets anything', async () => {
    const commit = await reviewed('echo more > d/g; echo top > top')
    const before = describeTree(ground.base)
    mount('-t', 'tmpfs', 'other', ground.base)
    try {
      sh('mkdir d', ground.base)
      await expect(commit()).rejects.toMatchObject({ code: 'base-invalid' })
      expect(sh('find . -type f', ground.base)).toBe('')
    } finally {
      execFileSync('umount', [ground.base])
    }
    expect(describeTree(ground.base)).toEqual(before)
    await commit()
    expect(sh('cat d/g top', ground.base)).toBe('more\ntop\n')
  })

  it('mounted on a directory of the base: refused', async () => {
    const commit = await reviewed('echo more > d/g')
    mount('-t', 'tmpfs', 'other', join(ground.base, 'd'))
    try {
      await expect(commit()).rejects.toMatchObject({ code: 'base-invalid' })
      expect(readdirSync(join(ground.base, 'd'))).toEqual([])
    } finally {
      execFileSync('umount', [join(ground.base, 'd')])
    }
  })
})

describe.skipIf(root)('names and times at their limits', () => {
  const ground = new CommitGround()

  it('land as the agent saw them, and are taken back', async () => {
    sh(
      `mkdir d; echo a > d/${LONG}; echo b > old; touch -d @-5.5 old d/${LONG}; touch -d @-7 d; echo f > far; touch -d @10413792000.5 far`,
      ground.base,
    )
    const before = describeTree(ground.base)
    const branch = await ground.fork()
    const seen = ground.work(branch, (view) =>
      sh(
        `echo c > d/${LONG}; touch -d @-90000.25 d/${LONG}; mkdir -p m${LONG.slice(1)}/${LONG}; echo x > m${LONG.slice(1)}/${LONG}/${LONG}
         echo e > old; touch -d @7258118400 old; echo n > d/new; chmod 600 far; echo x > last; touch -d @15032385535.75 last; touch -d @-1 d`,
        view,
      ),
    )
    const { commit } = await ground.commit(branch)
    expect(describeTree(ground.base)).toEqual(seen)
    await ground.committer.revert(commit, branch.record.requester)
    expect(describeTree(ground.base)).toEqual(before)
  })
})

describe('a filesystem on which times end in 2038', () => {
  const it = needs(root, missingFor('ext4'))
  const ground = new CommitGround()

  it('takes a commit, and takes it back when that fails in the middle', async () => {
    const image = join(ground.place, 'image')
    sh(`truncate -s 32M ${image}; PATH=$PATH:/usr/sbin:/sbin; mkfs.ext4 -Fq -I 128 ${image}`, ground.place)
    sh(`mount -o loop ${image} ${ground.base}; echo old > base/f`, ground.place)
    try {
      const branch = await ground.fork()
      ground.work(branch, (view) =>
        sh('echo new > f; echo early > early; touch -d @7258118400.5 early', view),
      )
      const changeset = await ground.diff(branch)
      const afterIntent = async (): Promise<void> => {
        sh('echo edited >> f', ground.base)
      }
      const failed = ground.committer.commit(branch.record, changeset, { ...NO_HOOKS, afterIntent })
      await expect(failed).rejects.toMatchObject({ code: 'conflict' })
      expect(sh('ls; cat f', ground.base)).toBe('f\nlost+found\nold\nedited\n')
    } finally {
      sh(`umount ${ground.base}`, ground.place)
    }
  })
})

describe.skipIf(root)('what appears in a layer after the review', () => {
  const ground = new CommitGround()

  it('a socket: the commit is refused and leaves nothing', async () => {
    sh('echo old > f', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo new > f', view))
    const changeset = await ground.diff(branch)
    const view = branch.mount()
    const server = createServer()
    // Reached by a short name: those of sockets have few letters.
    const short = mkdtempSync(join(tmpdir(), 's'))
    sh(`ln -s "$PWD" ${short}/v`, view)
    await new Promise<void>((resolve) => server.listen(`${short}/v/socket`, resolve))
    branch.unmount('lazily')
    try {
      await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'changed-since-review' })
      expect(sh('cat f', ground.base)).toBe('old\n')
      expect([...ground.journal, ...ground.staged]).toEqual([])
    } finally {
      await new Promise((resolve) => server.close(resolve))
      rmSync(short, { recursive: true })
    }
    const [socket] = (await ground.diff(branch)).changes.filter(({ findings }) => findings.length > 0)
    expect(socket?.findings[0]?.rule).toBe('special-file')
  })
})
