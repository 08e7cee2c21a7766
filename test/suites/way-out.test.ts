import { describe, expect, it } from 'vitest'
import { EventStream } from '../../daemon/agent/event-stream.ts'
import { LocalEngine } from '../../daemon/agent/local-engine.ts'
import type { CommitHooks } from '../../daemon/agent/ports.ts'
import { FileBranchStore } from '../../daemon/branch/store.ts'
import { recoverBranches } from '../../daemon/branch/store-recovery.ts'
import type { RunRequest } from '../../daemon/contract/engine.ts'
import type { BranchState } from '../../daemon/contract/states.ts'
import { recover, retryCommit } from '../../daemon/embedded.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { ModelDisk } from '../fakes/model-disk.ts'
import { ModelFiles } from '../fakes/model-files.ts'
import { type FakeWorld, fakeWorld, REQUESTER, runRequest } from '../fakes/ports.ts'

const NOW = new Date('2026-01-02T00:00:00.000Z')

const RUN: RunRequest = runRequest()

/** The use cases over the store that refuses what the lifecycle does not have; everything else is a fake. */
async function makeEngine(change: (world: FakeWorld) => void) {
  const files = new ModelFiles(new ModelDisk(['store']))
  for (const folder of ['branches', 'trash']) await files.makeDirectory(`/store/${folder}`)
  const store = new FileBranchStore('/store', files, () => NOW)
  const world = fakeWorld()
  world.ports.store = store
  change(world)
  const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
  const session = await engine.run(RUN)
  return { engine, store, world, files, id: session.id }
}

/** When a commit fails: before its hooks, between them, or when the branch is `committing`. */
const MOMENTS = {
  staging: async () => undefined,
  'before INTENT': async (hooks: CommitHooks) => hooks.beforeIntent('c1'),
  'after INTENT': async (hooks: CommitHooks) => {
    await hooks.beforeIntent('c1')
    await hooks.afterIntent('c1')
  },
} as const

const failing =
  (moment: keyof typeof MOMENTS, error: Error) =>
  (world: FakeWorld): void => {
    world.ports.committer.commit = async (_record, _changeset, hooks) => {
      await MOMENTS[moment](hooks)
      throw error
    }
  }

describe('a commit that fails', () => {
  const moments = Object.keys(MOMENTS) as (keyof typeof MOMENTS)[]
  const rows = moments.flatMap((moment): [keyof typeof MOMENTS, Error, BranchState][] => [
    [moment, new PuzzledError('no-space', 'full'), 'stopped'],
    [moment, new PuzzledError('not-writable', 'EPERM'), 'stopped'],
    [moment, new PuzzledError('conflict', 'edited'), moment === 'after INTENT' ? 'stopped' : 'held'],
    [moment, new Error('a defect'), 'stopped'],
    [moment, new PuzzledError('stuck', 'nobody knows'), 'commit-stuck'],
  ])

  it.each(rows)('in %s with %s leaves the branch %s, with a way out', async (moment, error, expected) => {
    const { engine, store, id } = await makeEngine(failing(moment, error))
    await engine.finish(id).catch((thrown: unknown) => expect(thrown).toBe(error))
    expect((await engine.show(id)).state).toBe(expected)
    // The journal has no trace of it: the base is the old one.
    await recoverBranches(store, [], NOW)
    expect((await engine.discard(id)).state).toBe('discarded')
  })
})

describe('a disk that takes no record', () => {
  it('hides no failure of a review, which can be begun again', async () => {
    const failure = new PuzzledError('policy-failed', 'no verdict')
    let full = false
    const { engine, world, files, id } = await makeEngine((made) => {
      made.verdict = 'hold'
      const { evaluate } = made.ports.gate
      made.ports.gate.evaluate = async (...args) => {
        if (!full) return evaluate(...args)
        throw failure
      }
    })
    const { writeRecord } = ModelFiles.prototype
    files.writeRecord = async (path, bytes) => {
      if (full && !bytes.toString().includes('"reviewing"'))
        throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      await writeRecord.call(files, path, bytes)
    }
    await engine.finish(id)
    full = true
    await expect(engine.review(id)).rejects.toBe(failure)
    full = false
    expect((await engine.show(id)).state).toBe('reviewing')
    expect((await engine.review(id)).state).toBe('held')
    expect(world.events.some(({ kind }) => kind === 'warning')).toBe(true)
  })

  it('stops a discard, which can be asked for again', async () => {
    const { engine, world, id } = await makeEngine((made) => {
      made.verdict = 'hold'
    })
    await engine.finish(id)
    const { record } = world.ports.audit
    world.ports.audit.record = async () => {
      throw new PuzzledError('no-space', 'full')
    }
    await expect(engine.discard(id)).rejects.toMatchObject({ code: 'no-space' })
    world.ports.audit.record = record
    expect((await engine.discard(id)).state).toBe('discarded')
  })
})

describe('an agent', () => {
  it('does not go on when what it was granted cannot be put on record', async () => {
    const world = fakeWorld()
    world.holdAgent = true
    const { update } = world.ports.store
    world.ports.store.update = async (id, change) => {
      if (change.grants !== undefined) throw new PuzzledError('no-space', 'full')
      return update(id, change)
    }
    const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
    await expect(engine.run(RUN)).rejects.toMatchObject({ code: 'no-space' })
    expect(world.log).toContain('kill')
    expect([...world.records.values()].map(({ state }) => state)).toEqual(['stopped'])
  })

  it('that filled the disk can be reviewed when there is room again, and waits for a person', async () => {
    const full = { is: true }
    const { engine, files, world, id } = await makeEngine((made) => {
      made.holdAgent = true
    })
    const { writeRecord } = ModelFiles.prototype
    files.writeRecord = async (path, bytes) => {
      if (full.is) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      await writeRecord.call(files, path, bytes)
    }
    const ended = engine.finish(id)
    world.endAgent?.()
    await expect(ended).rejects.toMatchObject({ code: 'no-space' })
    full.is = false
    expect((await engine.show(id)).state).toBe('running')
    expect((await engine.commit(id)).state).toBe('held')
  })
})

describe('opening a store', () => {
  it('is not prevented by a process of one branch that cannot be ended', async () => {
    const { store, id } = await makeEngine((made) => {
      made.holdAgent = true
    })
    const unswept: string[] = []
    const sweep = async (): Promise<void> => {
      throw new PuzzledError('stuck', '1 process cannot be ended')
    }
    await recover(store, { recover: async () => [] }, { sweep }, (branch) => unswept.push(branch))
    expect(unswept).toEqual([id])
    expect((await store.read(id)).state).toBe('stopped')
  })
})

describe('a stuck commit', () => {
  it.each([
    ['committed', 'committed', 1],
    ['undone', 'stopped', 0],
    ['stuck', 'commit-stuck', 0],
  ] as const)(
    'that is committed again and comes out %s leaves the branch %s',
    async (fate, state, resumed) => {
      const { engine, store, world, id } = await makeEngine(
        failing('after INTENT', new PuzzledError('stuck', 'EIO twice')),
      )
      await engine.finish(id)
      const asked: (readonly string[])[] = []
      const journal = {
        commit: 'c1',
        branch: id,
        digest: 'd',
        at: NOW.toISOString(),
        part: false,
        reverts: null,
      }
      const committer = {
        recover: async (retry: readonly string[] = []) => {
          asked.push(retry)
          return [
            { ...journal, fate: retry.includes('c1') ? fate : 'stuck', reason: fate, fresh: true } as const,
          ]
        },
      }
      world.ports.retry = (record) => retryCommit(store, committer, record)
      let resumes = 0
      world.ports.outbox.resume = async () => {
        resumes++
        return null
      }
      expect((await engine.commit(id)).state).toBe(state)
      expect(asked).toEqual([[], ['c1']])
      expect(resumes).toBe(resumed)
    },
  )
})
