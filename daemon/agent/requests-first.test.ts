import { beforeEach, describe, expect, it } from 'vitest'
import { branchRecord } from '../../test/fakes/branch-record.ts'
import { type FakeWorld, fakeWorld, profileFixture, REQUESTER } from '../../test/fakes/ports.ts'
import type { QueuedRequestSummary } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

const ID = '23456789bc'
const REQUEST: QueuedRequestSummary = {
  id: 'r1',
  method: 'POST',
  host: 'api.test',
  path: '/',
  bytes: 1,
  class: 'queue',
  sha256: 'd',
}

let world: FakeWorld
let waiting: QueuedRequestSummary[]
let standing: { sent: number; stopped: string | null }
const engine = (): LocalEngine =>
  LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)

beforeEach(() => {
  world = fakeWorld()
  waiting = [REQUEST]
  standing = { sent: 0, stopped: null }
  const profile = profileFixture()
  const resolved = { ...profile, network: { ...profile.network, replay: 'before-files' as const } }
  const record = branchRecord(ID, { state: 'stopped' })
  world.records.set(ID, { ...record, profile: { ...record.profile, resolved } })
  const { outbox, differ } = world.ports
  differ.withRequests = (changeset, requests) => ({
    ...changeset,
    requests,
    digest: `${changeset.digest} and ${requests.length}`,
  })
  outbox.pending = async () => waiting
  outbox.standing = async () => standing
  outbox.approve = async () => {
    world.log.push('approve requests')
  }
  outbox.replay = async () => {
    world.log.push('send')
    const sent = waiting.length
    waiting = []
    return { sent, problem: null }
  }
})

const consumed = (): number => world.log.filter((line) => line.startsWith('consume')).length

describe('requests that go before the files', () => {
  it('leave when the files could land, after the decision is used up, and once', async () => {
    expect(await engine().commit(ID)).toMatchObject({ state: 'committed', requests: 1, warnings: [] })
    const order = [
      'audit requests-first',
      'approve requests',
      'send',
      'audit replayed',
      'audit commit',
      'apply',
    ]
    const at = order.map((line) => world.log.indexOf(line))
    expect(at).toEqual([...at].sort((a, b) => a - b))
    expect(at).not.toContain(-1)
    for (const line of order) expect(world.log.filter((one) => one === line)).toEqual([line])
  })

  it('do not leave where the files could not land', async () => {
    world.ports.committer.commit = async () => {
      throw new PuzzledError('conflict', 'changed', { data: { conflicts: [{ path: 'a', message: 'b' }] } })
    }
    expect(await engine().commit(ID)).toMatchObject({ state: 'held', conflicts: [{ path: 'a' }] })
    expect(world.log).not.toContain('send')
    expect(world.log).not.toContain('approve requests')
    expect(consumed()).toBe(0)
  })

  it('do not leave where a rehearsal could not be taken back', async () => {
    world.ports.committer.commit = async (_record, _changeset, hooks) => {
      await hooks.beforeIntent('c1').catch(() => undefined)
      throw new PuzzledError('stuck', 'neither decided nor withdrawn')
    }
    expect(await engine().commit(ID)).toMatchObject({ state: 'commit-stuck' })
    expect(world.log).not.toContain('send')
  })

  it('keep the files away when one of them fails', async () => {
    world.ports.outbox.replay = async () => ({ sent: 1, problem: 'request r2 is failed: Answered 500' })
    const outcome = await engine().commit(ID)
    expect(outcome).toMatchObject({ state: 'held', reason: expect.stringContaining('no file was changed') })
    expect(world.log).not.toContain('apply')
    expect(world.log).not.toContain('move committing')
  })

  it('are never sent again when the base changed meanwhile, and that is said', async () => {
    const { commit } = world.ports.committer
    let tries = 0
    world.ports.committer.commit = async (record, changeset, hooks) => {
      // The rehearsal finds nothing, the commit does.
      if (++tries === 2) throw new PuzzledError('conflict', 'changed', { data: { conflicts: [] } })
      return commit(record, changeset, hooks)
    }
    const held = await engine().commit(ID)
    expect(held).toMatchObject({
      state: 'held',
      reason: expect.stringContaining('1 of its requests had been sent'),
    })
    standing = { sent: 1, stopped: null }
    expect(await engine().commit(ID)).toMatchObject({ state: 'committed', requests: 0 })
    expect(world.log.filter((line) => line === 'send')).toEqual(['send'])
  })

  it('stop everything, an empty branch too, until a person has decided about one that nobody knows of', async () => {
    standing = { sent: 1, stopped: 'request r1 is unknown: it left' }
    const outcome = await engine().commit(ID)
    expect(outcome).toMatchObject({
      state: 'held',
      reason: expect.stringContaining('puzzlectl queue resume'),
    })
    waiting = []
    world.changes = []
    expect(await engine().commit(ID)).toMatchObject({ state: 'held' })
    expect(world.log).not.toContain('send')
    expect(world.log).not.toContain('move staging')
  })
})
