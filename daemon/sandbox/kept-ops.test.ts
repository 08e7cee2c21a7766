import { describe, expect, it } from 'vitest'
import type { SpawnOp } from '../contract/spawn.ts'
import { KeptOps, keep } from './kept-ops.ts'
import { type FixtureChange, joinFixture, layersOf, planOf } from './plan.fixture.ts'
import { opsOf } from './spawn-plan.ts'

const op = (name: string, more: Partial<SpawnOp> = {}): SpawnOp => ({
  ...{ name, call: 'getpid', args: [], expect: 'ok' },
  ...more,
})

describe('what is planned once', () => {
  it('is planned again for another key, and when too many others were asked for since', () => {
    const kept = new KeptOps<readonly [string]>()
    const planned: string[] = []
    const of = (key: string) =>
      kept.of(key, () => {
        planned.push(key)
        return [key]
      })
    expect(of('a')).toBe(of('a'))
    for (let other = 0; other < 7; other++) of(`${other}`)
    expect(of('a')).toEqual(['a'])
    of('7')
    of('8')
    expect(of('a')).toEqual(['a'])
    expect(planned.filter((key) => key === 'a')).toEqual(['a'])
    expect(of('0')).toEqual(['0'])
    expect(planned.filter((key) => key === '0')).toEqual(['0', '0'])
  })

  it('is not marked where a result is written into it', () => {
    const patched = op('b', { patch: [{ arg: 0, offset: 0, slot: 'a' }] })
    expect(keep([op('a'), patched]).map(({ kept }) => kept)).toEqual([true, undefined])
  })
})

describe('a start after another one', () => {
  const plain = (list: readonly SpawnOp[]) => list.map(({ kept: _, ...rest }) => rest)
  const ops = (change: FixtureChange = {}) => opsOf(planOf(change))
  const descriptors = { ...joinFixture().input.descriptors, terminals: 901, init: 902, status: 903 }

  it('has the same calls', () => expect(plain(ops())).toEqual(plain(ops())))

  it('shares none that has a descriptor, a name or a content of its own', () => {
    const before = new Set(ops())
    const list = ops({ input: { hostname: 'puzzle-other', descriptors } })
    const shared = list.filter((one) => before.has(one))
    const numbers = (of: readonly SpawnOp[]) =>
      of.flatMap(({ args }) => args.filter((arg) => arg === 901 || arg === 902 || arg === 903))
    expect(shared.length).toBeGreaterThan(100)
    expect(shared.every((one) => one.kept === true && one.patch === undefined)).toBe(true)
    expect(numbers(shared)).toEqual([])
    // The control: they are in the plan.
    expect(new Set(numbers(list))).toEqual(new Set([901, 902, 903]))
  })

  it.each<[string, FixtureChange]>([
    ['another user', { requester: { uid: 7, gid: 8, groups: [] }, baseOwner: 7 }],
    ['another base', { layers: [layersOf('/srv/other')] }],
    ['another home', { home: '/home/v' }],
    ['another secret', { facts: { secrets: [{ path: '/etc/other', kind: 'file' }] } }],
    ['a mask of another kind', { facts: { secrets: [{ path: '/etc/shadow', kind: 'directory' }] } }],
    ['another program of profiles', { profile: { home: 'hidden' } }],
  ])('for %s has calls of its own', (_, change) => {
    const root = (list: readonly SpawnOp[]) => plain(list.filter(({ call }) => ROOT_CALLS.has(call)))
    const first = root(ops())
    const other = root(ops(change))
    expect(other).not.toEqual(first)
    expect(root(ops())).toEqual(first)
    expect(root(ops(change))).toEqual(other)
  })
})

const ROOT_CALLS = new Set(['fsconfig', 'openat2', 'open_tree', 'move_mount', 'fchownat', 'mkdirat'])
