import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { ConflictEntry } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { needs, root } from '../tier/needs.ts'
import type { TestBranch } from './branches.ts'
import { CommitGround, sh } from './commit-ground.ts'

const it = needs(root)
const ground = new CommitGround()
const at = (name: string): string => join(ground.base, name)

/** A branch in which this was done. */
async function after(script: string): Promise<TestBranch> {
  const branch = await ground.fork()
  ground.work(branch, (view) => sh(script, view))
  return branch
}

const landed = async (script: string): Promise<string> => (await ground.commit(await after(script))).commit

async function conflictsOf(branch: TestBranch): Promise<readonly string[]> {
  try {
    await ground.commit(branch)
    return []
  } catch (error) {
    if (!(error instanceof PuzzledError) || error.code !== 'conflict') throw error
    return ((error.data?.conflicts ?? []) as ConflictEntry[]).map(
      ({ path, message }) => `${path}: ${message}`,
    )
  }
}

it('what another branch removed after the fork does not come back without a word', async () => {
  writeFileSync(at('x'), 'old')
  mkdirSync(at('d'))
  writeFileSync(at('d/f'), 'old')
  const second = await after('echo more >> x; echo more > d/new')
  const first = await landed('rm -r x d')
  expect(await conflictsOf(second)).toEqual(
    ['d', 'x'].map((path) => `${path}: commit ${first} removed it after the fork`),
  )
  expect([existsSync(at('x')), existsSync(at('d'))]).toEqual([false, false])
})

it('a revert removes, too', async () => {
  const added = await landed('echo one > x')
  const second = await after('echo two >> x')
  const { commit } = await ground.committer.revert(added, { uid: 0, gid: 0, groups: [0], name: 'root' })
  expect(await conflictsOf(second)).toEqual([`x: commit ${commit} removed it after the fork`])
})

it('a branch of a directory within hears of it', async () => {
  mkdirSync(at('sub'))
  writeFileSync(at('sub/x'), 'old')
  const inner = await ground.store.fork([at('sub')])
  inner.record = { ...inner.record, createdAt: new Date().toISOString() }
  ground.work(inner, (view) => sh('echo more >> x', view))
  const first = await landed('rm sub/x')
  expect(await conflictsOf(inner)).toEqual([`x: commit ${first} removed it after the fork`])
})

it('what was removed before the fork, came after it and went, or is elsewhere is nobody’s work', async () => {
  writeFileSync(at('before'), 'old')
  writeFileSync(at('elsewhere'), 'old')
  await landed('rm before')
  // The clock of file times goes in steps.
  await new Promise((resolve) => setTimeout(resolve, 20))
  const branch = await after('echo mine > before; echo mine > between')
  await landed('echo other > between')
  await landed('rm between elsewhere')
  expect(await conflictsOf(branch)).toEqual([])
  expect([readFileSync(at('before'), 'utf8'), readFileSync(at('between'), 'utf8')]).toEqual([
    'mine\n',
    'mine\n',
  ])
})

it('what the same branch removed in an earlier part is its own', async () => {
  writeFileSync(at('x'), 'old')
  const branch = await after('rm x')
  const { commit: id, digest } = await ground.commit(branch)
  branch.record = { ...branch.record, commit: { id, at: new Date().toISOString(), digest } }
  ground.work(branch, (view) => sh('echo again > x', view))
  expect(await conflictsOf(branch)).toEqual([])
  expect(readFileSync(at('x'), 'utf8')).toBe('again\n')
  rmSync(at('x'))
})
