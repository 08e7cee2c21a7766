import { expect, it } from 'vitest'
import { type FakeWorld, fakeWorld, REQUESTER, runRequest } from '../../test/fakes/ports.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'
import type { LaunchRequest } from './ports.ts'

const again = (restart: number) => ({ code: 3, signal: null, restart, pauseMillis: 100 * 2 ** (restart - 1) })

/** An agent that ends right after it was said that it is started again, while the disk is slow. */
async function endsSoon(world: FakeWorld, restarts: number): Promise<string> {
  let launch: Pick<LaunchRequest, 'restarting'> = {}
  world.holdAgent = true
  world.onLaunch = (request) => {
    launch = request
  }
  const { record } = world.ports.audit
  world.ports.audit.record = async (kind, id, facts) => {
    if (kind === 'restart') await new Promise((resolve) => setTimeout(resolve, 5))
    await record(kind, id, facts)
  }
  const { update } = world.ports.store
  world.ports.store.update = async (id, change) => {
    if (change.restarted !== undefined) world.log.push(`restarted ${change.restarted.restart}`)
    return await update(id, change)
  }
  const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
  const session = await engine.run(runRequest({ restart: { when: 'on-failure', times: null } }))
  for (let restart = 1; restart <= restarts; restart++) launch.restarting?.(again(restart))
  world.endAgent?.()
  await session.exited
  return session.id
}

it('what is said of further starts is on record before their end is, in their order', async () => {
  const world = fakeWorld()
  await endsSoon(world, 3)
  const said = world.log.filter((line) => /^(restarted|audit (restart|exit)|move stopped)/.test(line))
  const each = (restart: number): string[] => ['audit restart', `restarted ${restart}`]
  expect(said).toEqual([1, 2, 3].flatMap(each).concat('move stopped', 'audit exit'))
})

it('what cannot be put on record is a warning, and keeps no end from being recorded', async () => {
  const world = fakeWorld()
  const { record } = world.ports.audit
  world.ports.audit.record = async (kind, id, facts) => {
    if (kind === 'restart') throw new Error('the disk is full')
    await record(kind, id, facts)
  }
  const id = await endsSoon(world, 1)
  expect(world.records.get(id)?.exit).toMatchObject({ code: 0 })
  expect(world.events).toContainEqual(
    expect.objectContaining({ kind: 'warning', message: expect.stringContaining('the disk is full') }),
  )
})
