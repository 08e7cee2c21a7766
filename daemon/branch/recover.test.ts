import { describe, expect, it } from 'vitest'
import { contextOf, makeWorld, NO_HOOKS, treesOf } from '../../test/fakes/commit-world.ts'
import type { ModelDisk } from '../../test/fakes/model-disk.ts'
import { land } from './commit.ts'
import { recoverCommits } from './recover.ts'

const AT = '2026-01-01T00:00:01.000Z'

/** A commit whose power was cut right after it was decided. */
async function decided(): Promise<ModelDisk> {
  const { disk, job } = makeWorld()
  const hooks = { ...NO_HOOKS, afterIntent: async () => disk.cutPower() }
  // What it says is of no use: nobody is there any more to hear it.
  await expect(land(contextOf(disk), job, hooks)).rejects.toThrow()
  disk.restart(() => 'kept')
  return disk
}

describe('recovery', () => {
  it('does nothing to a filesystem that is not the one of the commit, and finishes when that is back', async () => {
    const disk = await decided()
    const old = treesOf(disk)
    const other = disk.fork()
    other.filesystemOf = (): string => 'model:another'
    expect(recoverCommits(other, '/store/journal', AT)).toMatchObject([
      { fate: 'stuck', reason: expect.stringMatching(/is on another filesystem/) },
    ])
    other.settle()
    expect(treesOf(other)).toEqual(old)
    const back = other.fork()
    expect(recoverCommits(back, '/store/journal', AT)).toMatchObject([{ fate: 'committed' }])
    expect(treesOf(back)).not.toEqual(old)
  })

  it('goes on where the kernel does not say which filesystem it is', async () => {
    const disk = await decided()
    disk.filesystemOf = (): undefined => undefined
    expect(recoverCommits(disk, '/store/journal', AT)).toMatchObject([{ fate: 'committed' }])
  })
})
