import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { BranchRecord } from '../../daemon/contract/branch.ts'
import { root } from '../tier/needs.ts'
import { CommitGround, sh } from './commit-ground.ts'

const HOUR = 3_600_000

/** The record of a fork that was made when the clock was an hour ahead of now: it was set back since. */
function aheadOfNow({ createdAt, clock }: BranchRecord): Partial<BranchRecord> {
  if (clock === undefined) throw new Error('a fork records the clock')
  return {
    createdAt: new Date(Date.parse(createdAt) + HOUR).toISOString(),
    clock: { ...clock, bootedAt: clock.bootedAt + HOUR },
  }
}

describe.skipIf(root)('a clock that was set back after the fork', () => {
  const ground = new CommitGround()

  async function forked() {
    // What is older than the fork must be so by more than a reading of the clock is wrong.
    sh('echo base > f; sleep 1', ground.base)
    const branch = await ground.fork()
    ground.work(branch, (view) => sh('echo agent > f', view))
    branch.record = { ...branch.record, ...aheadOfNow(branch.record) }
    return branch
  }

  it('does not hide what somebody saved in place, of the same size and before the review', async () => {
    const branch = await forked()
    writeFileSync(join(ground.base, 'f'), 'user\n')
    const changeset = await ground.diff(branch)
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'conflict' })
    expect(readFileSync(join(ground.base, 'f'), 'utf8')).toBe('user\n')
  })

  it('does not hide what was saved after the review, with the times put back as well', async () => {
    const branch = await forked()
    const changeset = await ground.diff(branch)
    sh('touch -r f times; echo user > f; touch -r times f; rm times', ground.base)
    await expect(ground.commit(branch, changeset)).rejects.toMatchObject({ code: 'conflict' })
    expect(readFileSync(join(ground.base, 'f'), 'utf8')).toBe('user\n')
  })

  it('is no reason to refuse what nobody touched since', async () => {
    const branch = await forked()
    await ground.commit(branch)
    expect(readFileSync(join(ground.base, 'f'), 'utf8')).toBe('agent\n')
  })
})
