import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { branchRecord } from '../../test/fakes/branch-record.ts'
import { sealChangeset } from './changeset.ts'
import { WorkerCommitter } from './committer.ts'

it('a commit whose thread is ended is stuck, not refused: only its journal knows what it did', async () => {
  const root = mkdtempSync(join(tmpdir(), 'committer-'))
  const committer = new WorkerCommitter({ root, directory: () => root }, () => new Date())
  try {
    const nothing = async (): Promise<void> => undefined
    const changeset = sealChangeset({ bases: [], changes: [], requests: [] })
    const landing = committer.commit(branchRecord('23456789bc'), changeset, {
      beforeIntent: nothing,
      afterIntent: nothing,
    })
    const heard = expect(landing).rejects.toMatchObject({ code: 'stuck' })
    await committer.close()
    await heard
  } finally {
    rmSync(root, { recursive: true })
  }
})

it('a removal that is under way when the store is closed ends by itself, and says what it did', async () => {
  const root = mkdtempSync(join(tmpdir(), 'committer-'))
  const many = join(root, 'trash', 'branch')
  mkdirSync(many, { recursive: true })
  for (let file = 0; file < 2_000; file++) writeFileSync(join(many, String(file)), '')
  const committer = new WorkerCommitter({ root, directory: () => root }, () => new Date())
  try {
    const removal = committer.emptyTrash()
    await committer.close()
    expect(await removal).toEqual({ branches: 0, bytes: 0 })
    expect(readdirSync(many)).toHaveLength(2_000)
  } finally {
    rmSync(root, { recursive: true })
  }
})
