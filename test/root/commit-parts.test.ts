import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { selectChanges } from '../../daemon/branch/select.ts'
import { root } from '../tier/needs.ts'
import type { TestBranch } from './branches.ts'
import { CommitGround, sh } from './commit-ground.ts'

/** Lands one path of the branch and puts it on record, as the use cases do. */
async function commitPart(ground: CommitGround, branch: TestBranch, path: string): Promise<void> {
  const all = await ground.diff(branch)
  branch.record = { ...branch.record, digest: all.digest }
  const part = selectChanges(all, { only: [path], except: [] })
  const { commit, digest } = await ground.commit(branch, part)
  branch.record = { ...branch.record, commit: { id: commit, at: new Date().toISOString(), digest } }
}

async function commitRest(ground: CommitGround, branch: TestBranch): Promise<void> {
  const rest = await ground.diff(branch)
  branch.record = { ...branch.record, digest: rest.digest }
  await ground.commit(branch, rest)
}

const text = (ground: CommitGround, name: string): string => readFileSync(join(ground.base, name), 'utf8')

describe.skipIf(root)('after a part', () => {
  const ground = new CommitGround()

  it('what somebody edited before it landed is a conflict for the rest all the same', async () => {
    sh('echo old > f; echo old > g', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo agent > f; echo agent > g', view))
    sh('sleep 0.02; echo somebody > f', ground.base)
    await commitPart(ground, branch, 'g')
    await expect(commitRest(ground, branch)).rejects.toMatchObject({ code: 'conflict' })
    expect(text(ground, 'f')).toBe('somebody\n')
    expect(text(ground, 'g')).toBe('agent\n')
  })

  it('a path of it that the branch changes again is no conflict, until somebody else edits it', async () => {
    sh('echo old > f; echo old > g', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo agent > g', view))
    await commitPart(ground, branch, 'g')
    ground.work(branch, (view) => sh('echo again > g', view))
    await commitPart(ground, branch, 'g')
    expect(text(ground, 'g')).toBe('again\n')
    ground.work(branch, (view) => sh('echo third > g', view))
    sh('sleep 0.02; echo somebody > g', ground.base)
    await expect(commitPart(ground, branch, 'g')).rejects.toMatchObject({ code: 'conflict' })
    expect(text(ground, 'g')).toBe('somebody\n')
  })
  it.each([
    ['half removed', (file: string) => rmSync(file)],
    ['damaged', (file: string) => writeFileSync(file, 'x'.repeat(99))],
  ])('whose record is %s, the rest lands', async (_, spoil) => {
    sh('echo old > f; echo old > g', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo agent > f; echo agent > g', view))
    await commitPart(ground, branch, 'g')
    spoil(join(ground.store.root, 'journal', `${branch.record.commit?.id}.changes`))
    await commitRest(ground, branch)
    expect(text(ground, 'f')).toBe('agent\n')
  })
})
