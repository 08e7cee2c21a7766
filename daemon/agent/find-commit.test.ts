import { describe, expect, it } from 'vitest'
import { type FakeWorld, fakeWorld, REQUESTER, runRequest } from '../../test/fakes/ports.ts'
import { PuzzledError } from '../lib/errors.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }
const engineOf = (world: FakeWorld, requester = REQUESTER): LocalEngine =>
  LocalEngine.over(world.ports, new EventStream(), requester, async () => undefined)

const reverted = (world: FakeWorld): string[] => world.log.filter((line) => line.startsWith('revert '))

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof PuzzledError ? error.code : String(error)),
  )

describe('the commit to revert', () => {
  it.each([
    ['its id', 'caa', 'caa'],
    ['an unambiguous beginning', 'cab', 'cabx'],
  ])('can be named by %s', async (_how, text, commit) => {
    const world = fakeWorld()
    world.commits = ['caa', 'caab', 'cabx']
    await engineOf(world, ROOT).revert(text)
    expect(reverted(world)).toEqual([`revert ${commit}`])
  })

  it('can be named by the branch that it came from', async () => {
    const world = fakeWorld()
    const engine = engineOf(world)
    const session = await engine.run(runRequest())
    const { commit } = await engine.finish(session.id)
    await engine.revert(session.id)
    expect(reverted(world)).toEqual([`revert ${commit}`])
  })

  it.each([
    ['that two begin with', 'c', 'branch-ambiguous'],
    ['that nothing begins with', 'x', 'branch-unknown'],
    ['that is empty', '', 'branch-unknown'],
  ])('a text %s reverts nothing', async (_what, text, code) => {
    const world = fakeWorld()
    world.commits = ['c1', 'c2']
    expect(await codeOf(engineOf(world, ROOT).revert(text))).toBe(code)
    expect(reverted(world)).toEqual([])
  })

  it('of somebody else is not guessed at, and its branch is none', async () => {
    const world = fakeWorld()
    const mine = engineOf(world)
    const session = await mine.run(runRequest({ name: 'mine' }))
    const { commit } = await mine.finish(session.id)
    world.commits = [commit ?? '']
    const other = engineOf(world, { ...REQUESTER, uid: 1001 })
    for (const text of [commit?.slice(0, 1) ?? '', session.id, 'mine'])
      expect(await codeOf(other.revert(text))).toBe('branch-unknown')
    await mine.revert(commit?.slice(0, 1) ?? '')
    expect(reverted(world)).toEqual([`revert ${commit}`])
  })
})
