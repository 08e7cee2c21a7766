import { describe, expect, it } from 'vitest'
import { type FakeWorld, fakeWorld, REQUESTER, runRequest } from '../../test/fakes/ports.ts'
import type { RunRequest } from '../contract/engine.ts'
import { EventStream } from './event-stream.ts'
import { forkBranch, withOverlays } from './fork.ts'
import { LocalEngine } from './local-engine.ts'

describe('the bases of a branch', () => {
  it.each([
    ['are those that were asked for', ['/a', '/b'], [], ['/a', '/b']],
    ['and the places that the profile makes writable', ['/a'], ['/srv/x'], ['/a', '/srv/x']],
    ['once each', ['/a'], ['/a', '/b', '/b'], ['/a', '/b']],
    [
      'a project is seen through the home that holds it',
      ['/home/u/app', '/c'],
      ['/home/u'],
      ['/c', '/home/u'],
    ],
    ['a place in a base is a part of it', ['/home/u'], ['/home/u/.cache'], ['/home/u']],
    ['and one in another place as well', [], ['/home/u/.cache', '/home/u'], ['/home/u']],
    ['by components, not by characters', ['/home/user'], ['/home/u'], ['/home/user', '/home/u']],
  ])('%s', (_, asked, overlays, expected) => expect(withOverlays(asked, overlays)).toEqual(expected))

  it('are on record as they became', async () => {
    const world = fakeWorld()
    world.overlays = ['/base']
    const record = await forkBranch(world.ports, {
      ...{ bases: ['/base/app'], profile: 'fixture', name: null, afterwards: 'hold', budgets: {} },
      ...{ command: ['true'], cwd: '/base/app', requester: REQUESTER },
    })
    expect(record.bases.map(({ path }) => path)).toEqual(['/base'])
  })
})

describe('an agent whose budgets', () => {
  const request = (): RunRequest => runRequest({ afterwards: 'hold' })
  const engineOf = (world: FakeWorld): LocalEngine =>
    LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)

  it('would not carry it through its start is not started', async () => {
    const world = fakeWorld()
    const engine = engineOf(world)
    const withMemory = (memory: number) => engine.run({ ...request(), budgets: { memory } })
    await expect(withMemory(2 ** 24 - 1)).rejects.toMatchObject({
      code: 'usage',
      hint: expect.stringContaining('16M'),
    })
    expect(world.log).not.toContain('launch')
    await expect(withMemory(2 ** 24)).resolves.toMatchObject({ id: expect.any(String) })
  })

  it('nobody can watch is ended, and that is on record', async () => {
    const world = fakeWorld()
    world.holdAgent = true
    world.ports.budgets.watch = () => {
      throw new Error('no descriptor is left')
    }
    const engine = engineOf(world)
    await expect(engine.run(request())).rejects.toThrow('no descriptor is left')
    expect(world.log).toContain('kill')
    expect(await engine.list()).toMatchObject([{ state: 'stopped' }])
  })

  it('are used up is not thawed, and others are', async () => {
    const world = fakeWorld()
    world.holdAgent = true
    const engine = engineOf(world)
    const { id } = await engine.run(request())
    await engine.freeze(id)
    world.refusal = new Error('the budget is used up')
    await expect(engine.thaw(id)).rejects.toThrow('used up')
    expect(world.log).not.toContain('thaw')
    await expect(engine.signal(id, 'CONT')).rejects.toThrow('used up')
    world.refusal = null
    expect(await engine.thaw(id)).toMatchObject({ state: 'running' })
    world.endAgent?.()
    await engine.finish(id)
  })
})
