import { beforeEach, expect, it } from 'vitest'
import { type FakeWorld, fakeWorld, REQUESTER, runRequest } from '../../test/fakes/ports.ts'
import type { AgentSession } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

let world: FakeWorld
let engine: LocalEngine
beforeEach(() => {
  world = fakeWorld()
  world.holdAgent = true
  engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
})

const start = (): Promise<AgentSession> => engine.run(runRequest({ name: 'work' }))
const moves = (to: string): number => world.log.filter((line) => line === `move ${to}`).length

it('all who wait for one end hear the same, and it is done once', async () => {
  const { id } = await start()
  const waiting = [engine.finish(id), engine.finish(id), engine.finish(id)]
  world.endAgent?.()
  const [first, ...others] = await Promise.all(waiting)
  expect(first).toMatchObject({ state: 'committed', totals: { files: 1 } })
  expect(others).toEqual([first, first])
  expect(moves('committing')).toBe(1)
  // And who comes late, as long as nothing else has happened.
  expect(await engine.finish(id)).toEqual(first)
})

it('a verb on a branch that somebody waits for is answered at once', async () => {
  const { id } = await start()
  const waiting = engine.finish(id)
  for (const verb of [engine.review(id), engine.commit(id), engine.approve(id, decision)])
    await expect(verb).rejects.toMatchObject({ code: 'wrong-state' })
  world.endAgent?.()
  await waiting
})

it('a branch that changed nothing is gone, and how its agent ended can still be asked', async () => {
  world.changes = []
  world.exit = { ...world.exit, code: 3 }
  const { id } = await start()
  world.endAgent?.()
  expect(await engine.finish(id)).toMatchObject({ state: 'discarded', exit: { code: 3 } })
  world.records.delete(id)
  expect(await engine.finish(id)).toMatchObject({ state: 'discarded', exit: { code: 3 } })
  await expect(engine.show(id)).rejects.toMatchObject({ code: 'branch-unknown' })
})

it('who read its record before somebody else finished it, and asks after that, hears the same', async () => {
  world.changes = []
  const { id } = await start()
  world.endAgent?.()
  const { read } = world.ports.store
  let goOn: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  world.ports.store.read = async (text) => {
    const record = await read(text)
    await held
    return record
  }
  const late = engine.finish(id)
  // Long enough for it to have its record.
  await new Promise((resolve) => setImmediate(resolve))
  world.ports.store.read = read
  const first = await engine.finish(id)
  world.records.delete(id)
  goOn()
  expect(first).toMatchObject({ state: 'discarded' })
  expect(await late).toEqual(first)
})

it('a discard whose branch goes away with its agent, which changed nothing, did what was asked', async () => {
  const { id } = await start()
  const sweep = world.ports.launcher.sweep
  world.ports.launcher.sweep = async (branch) => {
    await sweep(branch)
    world.endAgent?.()
    world.records.delete(id)
  }
  expect(await engine.discard(id)).toMatchObject({ id, state: 'discarded' })
})

it('who waits for an agent whose branch is discarded hears that, and nothing of it is judged', async () => {
  const { id } = await start()
  const waiting = engine.finish(id)
  world.ports.launcher.sweep = async () => {
    world.endAgent?.()
    // The end of the agent is heard long before the discard is done.
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(await engine.discard(id)).toMatchObject({ state: 'discarded' })
  expect(await waiting).toMatchObject({ state: 'discarded' })
  expect(moves('reviewing')).toBe(0)
})

it('a branch that is discarded while it is looked at says so, not what was missing then', async () => {
  world.verdict = 'hold'
  const { id } = await start()
  world.endAgent?.()
  await engine.finish(id)
  world.ports.differ.diff = async () => {
    world.records.delete(id)
    throw new PuzzledError('kernel-refused', 'openat2 failed: ENOENT')
  }
  await expect(engine.review(id)).rejects.toMatchObject({
    code: 'wrong-state',
    message: expect.stringContaining('discarded meanwhile'),
  })
})

it('what happened since counts more than how it ended', async () => {
  world.verdict = 'hold'
  const { id } = await start()
  world.endAgent?.()
  expect(await engine.finish(id)).toMatchObject({ state: 'held' })
  await engine.approve(id, decision)
  expect(await engine.finish(id)).toMatchObject({ state: 'committed' })
})

const decision = { by: { ...REQUESTER, uid: 1 }, digest: null, selection: null, why: '' }
