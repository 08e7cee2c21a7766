import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { JobHooks } from '../../daemon/branch/commit-context.ts'
import { commitVerbs } from '../../daemon/branch/commit-verbs.ts'
import { WorkerCommitter } from '../../daemon/branch/committer.ts'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { InlineLink } from '../../daemon/lib/inline-link.ts'
import { needs, program, root } from '../tier/needs.ts'
import { CommitGround, describeTree, NO_HOOKS, sh } from './commit-ground.ts'
import { FILESYSTEMS, missingFor } from './filesystems.ts'

/** What a commit must not do: replace a file without asking who can still write to the old one. */
class Blind extends KernelDisk {
  override hasWriter(): boolean {
    return false
  }
}

const blind = (root: string): WorkerCommitter => {
  const link = new InlineLink(async () => commitVerbs(new Blind()))
  return new WorkerCommitter(
    { root, directory: (id) => join(root, 'branches', id) },
    () => new Date(),
    () => ({
      commits: link,
      housekeeping: link,
    }),
  )
}

const TREE = 'mkdir d gone; echo old > d/notes; echo old > gone/log; echo old > other'
const WORK = 'echo from the branch > d/notes; rm -r gone; echo more >> other; echo fresh > new'
const HELD = /another program has it open for writing/

describe.each(FILESYSTEMS)('a base file that somebody holds, on %s', (kind) => {
  const it = needs(root, missingFor(kind))
  const ground = new CommitGround(kind)

  const changed = async () => {
    sh(TREE, ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh(WORK, view))
    return { branch, changeset: await ground.diff(branch) }
  }
  const openAs = (name: string, flags: string, act: (fd: number) => Promise<void>): Promise<void> => {
    const fd = openSync(join(ground.base, name), flags)
    return act(fd).finally(() => closeSync(fd))
  }

  it.each(['d/notes', 'gone/log'])(
    'open for writing, %s: refused before anything is staged',
    async (name) => {
      const { branch, changeset } = await changed()
      const before = describeTree(ground.base)
      await openAs(name, 'a', async () => {
        const refused = ground.commit(branch, changeset)
        await expect(refused).rejects.toMatchObject({
          code: 'conflict',
          message: expect.stringMatching(HELD),
        })
        expect(describeTree(ground.base)).toEqual(before)
        expect([ground.journal, ground.staged]).toEqual([[], []])
      })
      await ground.commit(branch, changeset)
    },
  )

  it('open for reading only: lands', async () => {
    const { branch, changeset } = await changed()
    await openAs('d/notes', 'r', async (fd) => {
      await ground.commit(branch, changeset)
      expect(readFileSync(fd, 'utf8')).toBe('old\n')
    })
  })

  it('opened after INTENT: taken back, and what is then written is in the base', async () => {
    const { branch, changeset } = await changed()
    const before = describeTree(ground.base)
    let fd = -1
    const hooks: JobHooks = {
      ...NO_HOOKS,
      afterIntent: async () => {
        fd = openSync(join(ground.base, 'd/notes'), 'a')
      },
    }
    try {
      const refused = ground.committer.commit(branch.record, changeset, hooks)
      await expect(refused).rejects.toMatchObject({ code: 'conflict', message: expect.stringMatching(HELD) })
      expect(describeTree(ground.base)).toEqual(before)
      writeSync(fd, 'saved late\n')
      expect(sh('cat d/notes', ground.base)).toBe('old\nsaved late\n')
    } finally {
      closeSync(fd)
    }
  })

  it('is noticed by this test where nobody asks: the write is gone', async () => {
    const { branch, changeset } = await changed()
    await openAs('d/notes', 'a', async (fd) => {
      await blind(ground.store.root).commit(branch.record, changeset, NO_HOOKS)
      writeSync(fd, 'saved late\n')
      expect(sh('cat d/notes', ground.base)).toBe('from the branch\n')
    })
  })
})

describe('a base in which something is immutable or append-only', () => {
  const it = needs(root, program('chattr'))
  const ground = new CommitGround()

  it.each([
    ['a file that is replaced', '+i f', 'f', 'immutable', 'conflict'],
    ['a file that is removed', '+a rm', 'rm', 'append-only', 'conflict'],
    ['a file in a directory that is removed', '+i tree/in', 'tree/in', 'immutable', 'conflict'],
    ['a file that gets another mode', '+i mode', 'mode', 'immutable', 'conflict'],
    ['a directory that gets an entry', '+i d', 'd', 'immutable', 'lands'],
    ['a directory that gets an entry and keeps all', '+a d', 'd', 'append-only', 'lands'],
    ['the base itself', '+i .', '.', 'immutable', 'lands'],
  ])('%s: is refused by name before INTENT', async (_, flags, path, what, then) => {
    sh('mkdir d tree; for f in f rm mode tree/in; do echo old > $f; done', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo new > f; rm -r rm tree; chmod 600 mode; echo in > d/new', view))
    const changeset = await ground.diff(branch)
    const before = describeTree(ground.base)
    sh(`chattr ${flags}`, ground.base)
    try {
      const refused = ground.commit(branch, changeset)
      await expect(refused).rejects.toMatchObject({
        code: 'not-writable',
        message: `Cannot commit "${path}": it is ${what} in the base`,
      })
      expect([describeTree(ground.base), ground.journal, ground.staged]).toEqual([before, [], []])
    } finally {
      sh(`chattr ${flags.replace('+', '-')}`, ground.base)
    }
    // Setting the flag has changed a file's ctime, which is a conflict of its own; a directory's is not compared.
    const outcome = ground.commit(branch, changeset).then(
      () => 'lands',
      (error: { code: string }) => error.code,
    )
    expect(await outcome).toBe(then)
  })
})
