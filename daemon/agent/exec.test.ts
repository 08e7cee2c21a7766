import { EventEmitter, once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { EXITED, type FakeWorld, fakeWorld, REQUESTER, runRequest } from '../../test/fakes/ports.ts'
import type { CommandRequest } from '../contract/engine.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

const engineOf = (world: FakeWorld): LocalEngine =>
  LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)

const command = (change: Partial<CommandRequest> = {}): CommandRequest => ({
  command: ['npm', 'test'],
  cwd: null,
  environment: {},
  setEnvironment: {},
  stdio: { kind: 'pipes' },
  timeout: null,
  ...change,
})

/** A branch with an agent that runs until it is told to end. */
async function running() {
  const world = fakeWorld()
  world.holdAgent = true
  const engine = engineOf(world)
  const { id, exited } = await engine.run(runRequest({ afterwards: 'hold', command: ['agent'] }))
  const end = async (code: number): Promise<void> => {
    world.exit = { ...EXITED, code }
    world.endAgent?.()
    await exited
  }
  return { world, engine, id, end }
}

describe('exec', () => {
  it('joins the agent, also while somebody waits for its end, and is on record before it happens', async () => {
    const { world, engine, id, end } = await running()
    const finished = engine.finish(id)
    const session = await engine.exec(id, command())
    expect(await session.exited).toMatchObject({ code: 0 })
    expect(world.log.indexOf('audit exec')).toBeLessThan(world.log.indexOf('exec npm test'))
    await end(0)
    expect(await finished).toMatchObject({ state: 'held' })
  })

  it('waits for an agent that is on record as running and has not quite begun', async () => {
    const world = fakeWorld()
    world.holdAgent = true
    const gate = new EventEmitter()
    const { start } = world.ports.launcher
    Object.assign(world.ports.launcher, {
      start: async (...args: Parameters<typeof start>) => {
        const begun = start(...args)
        gate.emit('starting')
        await once(gate, 'open')
        return begun
      },
    })
    const engine = engineOf(world)
    const starting = once(gate, 'starting')
    const run = engine.run(runRequest({ afterwards: 'hold', command: ['agent'] }))
    await starting
    const [id = ''] = (await engine.list()).map((row) => row.id)
    const verbs = [engine.exec(id, command()), engine.signal(id, 'USR1')]
    setImmediate(() => gate.emit('open'))
    await Promise.all(verbs)
    expect(world.log).toContain('exec npm test')
    world.endAgent?.()
    await (await run).exited
  })

  it('runs in the place of an agent that has ended, whose end stays on record', async () => {
    const { world, engine, id, end } = await running()
    await end(3)
    expect(await engine.finish(id)).toMatchObject({ state: 'held' })
    world.exit = EXITED
    world.holdAgent = false
    await (await engine.exec(id, command())).exited
    expect(await engine.show(id)).toMatchObject({ state: 'stopped', exit: { code: 3 } })
    expect((await engine.show(id)).grants.filter(({ what }) => what === 'landlock')).toHaveLength(1)
    // The failure of the agent still holds its work.
    expect(await engine.review(id)).toMatchObject({ state: 'held', verdict: { kind: 'hold' } })
  })

  it('begins when all that follows from the end of the agent is done, and is known while it runs', async () => {
    const { world, engine, id } = await running()
    const gate = new EventEmitter()
    const { record } = world.ports.audit
    Object.assign(world.ports.audit, {
      record: async (...args: Parameters<typeof record>) => {
        if (args[0] === 'exit') await once(gate, 'open')
        return record(...args)
      },
    })
    world.endAgent?.()
    await expect.poll(async () => (await engine.show(id)).state).toBe('stopped')
    const again = engine.exec(id, command())
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(world.log.filter((what) => what === 'launch')).toHaveLength(1)
    gate.emit('open')
    await again
    expect(engine.running()).toEqual([id])
    // A verb that finds a running branch which nobody here runs would take it for a lost one, and end it.
    expect(await engine.signal(id, 'INT')).toBeDefined()
  })

  it('holds a good agent’s work when a command in its place used more than it may', async () => {
    const { world, engine, id, end } = await running()
    await end(0)
    world.budgetEnd = { used: {}, passed: true, why: 'The disk budget was passed' }
    const session = await engine.exec(id, command())
    world.endAgent?.()
    const cause = { cause: 'budget', why: 'The disk budget was passed' }
    expect(await session.exited).toMatchObject(cause)
    expect(await engine.show(id)).toMatchObject({ state: 'stopped', exit: cause })
    expect(await engine.review(id)).toMatchObject({ state: 'held', verdict: { kind: 'hold' } })
  })

  it('keeps the work of a branch in which a command cannot be started', async () => {
    const { world, engine, id, end } = await running()
    await end(0)
    world.onLaunch = () => {
      throw new Error('no such command')
    }
    await expect(engine.exec(id, command())).rejects.toThrow('no such command')
    expect(await engine.show(id)).toMatchObject({ state: 'stopped' })
    expect(world.log).not.toContain('trash')
  })

  it('refuses a branch that stands still or is decided, and time limits that are none', async () => {
    const { world, engine, id, end } = await running()
    await engine.freeze(id)
    await expect(engine.exec(id, command())).rejects.toMatchObject({ code: 'wrong-state' })
    await engine.thaw(id)
    for (const timeout of [0, -1, Number.NaN, 1e9])
      await expect(engine.exec(id, command({ timeout }))).rejects.toMatchObject({ code: 'usage' })
    await end(0)
    await world.ports.store.move(id, 'committed', 'test')
    await expect(engine.exec(id, command())).rejects.toMatchObject({ code: 'wrong-state' })
    expect(world.log).not.toContain('audit exec')
  })
})

describe('attach', () => {
  it('gives one more reader of the output', async () => {
    const { engine, id, end } = await running()
    const session = await engine.attach(id)
    expect(session.output === undefined ? '' : await text(session.output)).toBe('hello')
    await end(0)
    expect(await session.exited).toMatchObject({ code: 0 })
    await expect(engine.attach(id)).rejects.toMatchObject({ code: 'wrong-state' })
  })
})
