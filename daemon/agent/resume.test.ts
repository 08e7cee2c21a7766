import { expect, it } from 'vitest'
import { branchRecord } from '../../test/fakes/branch-record.ts'
import { fakeWorld, REQUESTER } from '../../test/fakes/ports.ts'
import type { BranchState } from '../contract/states.ts'
import { PuzzledError } from '../lib/errors.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

const ID = '23456789bc'

async function resumeIn(state: BranchState, landed: readonly string[], problem: PuzzledError | null = null) {
  const world = fakeWorld()
  world.records.set(ID, branchRecord(ID, { state }))
  let resumed = 0
  world.ports.outbox.resume = async () => {
    resumed++
    if (problem !== null) throw problem
    return { sent: 1, problem: null }
  }
  const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
  await engine.resume(landed)
  return { world, resumed }
}

it('requests of a commit that landed are sent by whoever comes next, on record', async () => {
  for (const [state, landed] of [
    ['committed', []],
    ['committed', [ID]],
    ['stopped', [ID]],
  ] as const) {
    const { world, resumed } = await resumeIn(state, landed)
    expect(resumed).toBe(1)
    expect(world.log).toContain('audit replayed')
  }
})

it('requests of a commit that was undone, or of none, are not', async () => {
  for (const state of ['stopped', 'held', 'running', 'commit-stuck'] as const)
    expect((await resumeIn(state, [])).resumed).toBe(0)
})

it('a queue that cannot be read keeps nobody from opening the store', async () => {
  const { world } = await resumeIn('committed', [], new PuzzledError('record-damaged', 'damaged'))
  expect(world.events).toMatchObject([{ kind: 'warning', branch: ID }])
})

it('the requests are bound before INTENT: recovery finishes whatever has one', async () => {
  const world = fakeWorld()
  world.ports.outbox.approve = async () => {
    world.log.push('approve requests')
  }
  world.ports.committer.commit = async (_record, _changeset, hooks) => {
    await hooks.beforeIntent('c1')
    world.log.push('INTENT')
    throw new PuzzledError('stuck', 'the process died here')
  }
  const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
  world.records.set(ID, branchRecord(ID, { state: 'stopped' }))
  await engine.commit(ID)
  expect(world.log.indexOf('approve requests')).toBeGreaterThan(world.log.indexOf('audit commit'))
  expect(world.log.indexOf('approve requests')).toBeLessThan(world.log.indexOf('INTENT'))
})
