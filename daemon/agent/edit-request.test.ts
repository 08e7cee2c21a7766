import { expect, it } from 'vitest'
import { branchRecord } from '../../test/fakes/branch-record.ts'
import { fakeWorld, REQUESTER } from '../../test/fakes/ports.ts'
import type { BranchState } from '../contract/states.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

const ID = '23456789bc'

async function editIn(state: BranchState, digest: string | null) {
  const world = fakeWorld()
  world.verdict = 'hold'
  world.records.set(ID, branchRecord(ID, { state, digest }))
  world.ports.outbox.edit = async (_record, request, edit) => {
    world.log.push(`edit ${request} ${Object.keys(edit)}`)
  }
  const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
  return { world, outcome: engine.queueEdit(ID, 'r1', { method: 'PUT' }, 'better') }
}

it('a branch that was judged is judged again at once, and asks a person again', async () => {
  const { world, outcome } = await editIn('held', 'old')
  expect(await outcome).toMatchObject({ state: 'held', verdict: { kind: 'hold' } })
  expect((await outcome).digest).not.toBe('old')
  const order = ['audit queue-edit', 'edit r1 method', 'move reviewing', 'audit verdict', 'ask']
  const at = order.map((line) => world.log.indexOf(line))
  expect(at).toEqual([...at].sort((a, b) => a - b))
  expect(at).not.toContain(-1)
})

it('a branch that was not judged yet will be', async () => {
  const { world, outcome } = await editIn('ready', null)
  expect(await outcome).toMatchObject({ state: 'ready' })
  expect(world.log).toContain('edit r1 method')
  expect(world.log).not.toContain('move reviewing')
})

it('a held branch is judged again without what was dropped, and not because of anything else', async () => {
  const acts = async (action: 'drop' | 'skip', state: BranchState): Promise<readonly string[]> => {
    const world = fakeWorld()
    world.verdict = 'hold'
    world.records.set(ID, branchRecord(ID, { state, digest: 'old' }))
    const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
    await engine.queueAct(ID, 'r1', action, 'not wanted')
    return world.log.filter((line) => line.startsWith('audit') || line === 'ask')
  }
  expect(await acts('drop', 'held')).toEqual(['audit queue-drop', 'audit verdict', 'ask'])
  expect(await acts('drop', 'stopped')).toEqual(['audit queue-drop'])
  expect(await acts('skip', 'held')).toEqual(['audit queue-skip'])
})

it('what is decided stays as it was decided', async () => {
  for (const state of ['staging', 'committing', 'committed', 'commit-stuck', 'discarding'] as const) {
    const { world, outcome } = await editIn(state, 'old')
    await expect(outcome).rejects.toMatchObject({ code: 'wrong-state' })
    expect(world.log.filter((line) => /edit/.test(line))).toEqual([])
  }
})
