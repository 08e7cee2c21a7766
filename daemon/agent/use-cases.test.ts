import { describe, expect, it } from 'vitest'
import {
  EXITED,
  type FakeWorld,
  fakeWorld,
  fileChange,
  profileFixture,
  REQUESTER,
  runRequest,
} from '../../test/fakes/ports.ts'
import type { RunRequest } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

const request = (change: Partial<RunRequest> = {}): RunRequest =>
  runRequest({ environment: { PATH: '/bin', LC_ALL: 'C', SECRET: 'x' }, ...change })

const engineOf = (world: FakeWorld): LocalEngine =>
  LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)

async function runToEnd(world: FakeWorld, change: Partial<RunRequest> = {}) {
  const engine = engineOf(world)
  const session = await engine.run(request(change))
  return { engine, id: session.id, outcome: await engine.finish(session.id) }
}

const code = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof PuzzledError ? error.code : String(error)),
  )

describe('run', () => {
  it('commits what the gate allows, and everything is on record before it happens', async () => {
    const world = fakeWorld()
    const { outcome } = await runToEnd(world)
    expect(outcome).toMatchObject({ state: 'committed', commit: 'c1', totals: { files: 1 } })
    const order = (a: string, b: string): void =>
      expect(world.log.indexOf(a)).toBeLessThan(world.log.indexOf(b))
    order('create', 'prepare')
    order('move running', 'launch')
    order('audit start', 'launch')
    order('sweep', 'move reviewing')
    order('audit verdict', 'move staging')
    order('audit commit', 'move committing')
    order('move committing', 'apply')
    order('apply', 'move committed')
  })

  it('holds what a person must see and asks for the approval', async () => {
    const world = fakeWorld()
    world.verdict = 'hold'
    const { outcome } = await runToEnd(world)
    expect(outcome.state).toBe('held')
    expect(world.log).toContain('ask')
    expect(world.log).not.toContain('apply')
  })

  it('keeps what the policy denies, with nothing landed', async () => {
    const world = fakeWorld()
    world.verdict = 'deny'
    const { outcome, engine, id } = await runToEnd(world)
    expect(outcome).toMatchObject({ state: 'held', verdict: { kind: 'deny' } })
    expect(world.log).not.toContain('apply')
    expect(await code(engine.approve(id, { by: REQUESTER, digest: null, selection: null, why: '' }))).toBe(
      'denied',
    )
  })

  it('is not stopped by a verdict in shadow mode, and records it', async () => {
    const world = fakeWorld()
    world.verdict = 'deny'
    const { evaluate } = world.ports.gate
    world.ports.gate.evaluate = async (record, changeset) => ({
      ...(await evaluate(record, changeset)),
      shadow: true,
    })
    const { outcome } = await runToEnd(world)
    expect(outcome).toMatchObject({ state: 'committed', verdict: { kind: 'deny', shadow: true } })
  })

  it('holds the work of an agent that failed, unless the profile says otherwise', async () => {
    const world = fakeWorld()
    world.exit = { ...EXITED, code: 3 }
    const { outcome } = await runToEnd(world)
    expect(outcome).toMatchObject({
      state: 'held',
      verdict: { kind: 'hold', hold: [{ rule: 'agent-failed' }] },
    })

    const lenient = fakeWorld()
    lenient.exit = { ...EXITED, code: 3 }
    lenient.profile = profileFixture({ gate: { ...lenient.profile.gate, onAgentFailure: 'gate' } })
    expect((await runToEnd(lenient)).outcome.state).toBe('committed')
  })

  it('leaves nothing behind when nothing was changed', async () => {
    const world = fakeWorld()
    world.changes = []
    const { outcome } = await runToEnd(world)
    expect(outcome).toMatchObject({ state: 'discarded', reason: 'nothing was changed' })
  })

  it('does what was asked afterwards', async () => {
    expect((await runToEnd(fakeWorld(), { afterwards: 'hold' })).outcome.state).toBe('held')
    expect((await runToEnd(fakeWorld(), { afterwards: 'discard' })).outcome.state).toBe('discarded')
  })

  it('never lands entries that cannot be committed, whatever the verdict', async () => {
    const world = fakeWorld()
    world.changes = [{ ...fileChange('dev', ''), findings: [{ rule: 'device', message: 'a device' }] }]
    const { outcome } = await runToEnd(world)
    expect(outcome.state).toBe('held')
    expect(world.log).not.toContain('apply')
  })

  it('refuses a verdict about another digest', async () => {
    const world = fakeWorld()
    const { evaluate } = world.ports.gate
    world.ports.gate.evaluate = async (record, changeset) => ({
      ...(await evaluate(record, changeset)),
      digest: 'other',
    })
    const engine = engineOf(world)
    const session = await engine.run(request())
    expect(await code(engine.finish(session.id))).toBe('policy-failed')
    expect((await engine.show(session.id)).state).toBe('stopped')
    expect(world.log).not.toContain('apply')
  })

  it('passes only the environment that the profile lists, and what was asked for by name', async () => {
    const world = fakeWorld()
    let seen: Readonly<Record<string, string>> = {}
    world.onLaunch = (launch) => {
      seen = launch.environment
    }
    await runToEnd(world, { setEnvironment: { TOKEN: 't' } })
    expect(seen).toEqual({ PATH: '/bin', LC_ALL: 'C', HOME: '/home/agent', TOKEN: 't' })
  })

  it('leaves no branch when the agent cannot be started', async () => {
    const world = fakeWorld()
    world.onLaunch = () => {
      throw new PuzzledError('command-not-found', 'no such command')
    }
    expect(await code(engineOf(world).run(request()))).toBe('command-not-found')
    expect([...world.records.values()].map((record) => record.state)).toEqual(['discarded'])
  })
})

describe('fork', () => {
  it('refuses when a required feature is missing or only partly there', async () => {
    const world = fakeWorld()
    world.profile = profileFixture({ require: ['landlock'] })
    for (const state of ['missing', 'partly'] as const) {
      const row = world.features.landlock
      if (row !== undefined) world.features.landlock = { ...row, state }
      expect(await code(engineOf(world).run(request()))).toBe('feature-missing')
    }
    expect(world.records.size).toBe(0)
  })

  it('refuses budgets that are unknown or wider than the profile', async () => {
    expect(await code(runToEnd(fakeWorld(), { budgets: { wall: 61 } }))).toBe('usage')
    expect(await code(runToEnd(fakeWorld(), { budgets: { coffee: 1 } }))).toBe('usage')
    expect(await code(runToEnd(fakeWorld(), { budgets: { wall: 10, pids: 5 } }))).toBe('no error')
  })

  it('refuses a name that is taken or not a name', async () => {
    const world = fakeWorld()
    await runToEnd(world, { name: 'fix', afterwards: 'hold' })
    expect(await code(runToEnd(world, { name: 'fix' }))).toBe('usage')
    expect(await code(runToEnd(world, { name: '../x' }))).toBe('usage')
  })
})

describe('decisions', () => {
  it('an approval lands exactly the digest that was reviewed, once', async () => {
    const world = fakeWorld()
    world.verdict = 'hold'
    const { engine, id, outcome } = await runToEnd(world)
    const landed = await engine.approve(id, {
      by: REQUESTER,
      digest: outcome.digest,
      selection: null,
      why: 'fine',
    })
    expect(landed.state).toBe('committed')
    const by = [{ uid: 1001, name: 'reviewer' }]
    expect(world.records.get(id)?.approval).toMatchObject({ digest: outcome.digest, by })
    expect(world.log.indexOf('consume')).toBeLessThan(world.log.indexOf('move committing'))
    expect(world.approved.size).toBe(0)
  })

  it('an approval of what only waited as asked for is on record, too', async () => {
    const world = fakeWorld()
    const { engine, id, outcome } = await runToEnd(world, { afterwards: 'hold' })
    const decision = { by: REQUESTER, digest: outcome.digest, selection: null, why: 'fine' }
    expect((await engine.approve(id, decision)).state).toBe('committed')
    expect(world.records.get(id)?.approval).toMatchObject({ by: [{ uid: 1001, name: 'reviewer' }] })
    expect(world.approved.size).toBe(0)
  })

  it('an approval of something else is refused and nothing lands', async () => {
    const world = fakeWorld()
    world.verdict = 'hold'
    const { engine, id } = await runToEnd(world)
    world.changes = [fileChange('a.txt', 'changed after the review')]
    const late = engine.approve(id, { by: REQUESTER, digest: null, selection: null, why: '' })
    expect(await code(late)).toBe('changed-since-review')
    expect(world.log).not.toContain('apply')
  })

  it('a part can be approved; the rest stays', async () => {
    const world = fakeWorld()
    world.verdict = 'hold'
    world.changes = [fileChange('a.txt', 'a'), fileChange('b.txt', 'b')]
    const { engine, id } = await runToEnd(world)
    const selection = { only: ['b.txt'], except: [] }
    const part = await engine.approve(id, { by: REQUESTER, digest: null, selection, why: '' })
    expect(part).toMatchObject({ state: 'stopped', commit: 'c1', totals: { files: 1 } })
  })

  it('a part has a verdict of its own, on record before it lands', async () => {
    const world = fakeWorld()
    world.verdict = 'deny'
    world.changes = [fileChange('a.txt', 'a'), fileChange('b.txt', 'b')]
    const { engine, id } = await runToEnd(world)
    const { evaluate } = world.ports.gate
    world.ports.gate.evaluate = async (record, changeset) => {
      world.verdict = changeset.changes.length === 1 ? 'hold' : 'deny'
      return evaluate(record, changeset)
    }
    world.log.length = 0
    const selection = { only: ['b.txt'], except: [] }
    const part = await engine.approve(id, { by: REQUESTER, digest: null, selection, why: '' })
    expect(part).toMatchObject({ state: 'stopped', commit: 'c1', verdict: { kind: 'hold' } })
    const told = world.log.filter((what) => what === 'audit verdict' || what === 'audit commit')
    expect(told).toEqual(['audit verdict', 'audit verdict', 'audit commit'])
  })

  it('a conflict keeps the branch and names the paths', async () => {
    const world = fakeWorld()
    world.ports.committer.commit = async () => {
      throw new PuzzledError('conflict', 'changed', {
        data: { conflicts: [{ path: 'a.txt', message: 'edited' }] },
      })
    }
    const { outcome } = await runToEnd(world)
    expect(outcome).toMatchObject({ state: 'held', conflicts: [{ path: 'a.txt' }], commit: null })
  })

  it('a commit that can be neither finished nor undone is visible', async () => {
    const world = fakeWorld()
    world.onCommit = () => {
      throw new PuzzledError('stuck', 'EIO twice')
    }
    expect((await runToEnd(world)).outcome.state).toBe('commit-stuck')
  })

  it('any other failure says that nothing changed and keeps the work', async () => {
    const world = fakeWorld()
    world.onCommit = () => {
      throw new PuzzledError('no-space', 'disk full')
    }
    const engine = engineOf(world)
    const session = await engine.run(request())
    expect(await code(engine.finish(session.id))).toBe('no-space')
    expect((await engine.show(session.id)).state).toBe('stopped')
  })

  it('reject discards; discard ends a running agent first', async () => {
    const world = fakeWorld()
    world.verdict = 'hold'
    const { engine, id } = await runToEnd(world)
    expect((await engine.reject(id, 'no')).state).toBe('discarded')

    const busy = fakeWorld()
    busy.holdAgent = true
    const running = engineOf(busy)
    const session = await running.run(request())
    busy.standsStill = false
    expect(await running.freeze(session.id)).toMatchObject({
      state: 'frozen',
      reason: expect.stringContaining('wait inside the kernel'),
    })
    // Whoever froze it says when it goes on; more of a budget is no such word.
    expect((await running.extend(session.id, 'wall', 5)).state).toBe('frozen')
    expect((await running.thaw(session.id)).state).toBe('running')
    expect(busy.restsAsAsked).toBe(false)
    expect((await running.discard(session.id)).state).toBe('discarded')
    expect(await code(running.discard(session.id))).toBe('wrong-state')
  })
})
