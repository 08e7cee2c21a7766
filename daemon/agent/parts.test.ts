import { describe, expect, it } from 'vitest'
import {
  EXITED,
  type FakeWorld,
  fakeWorld,
  fileChange,
  REQUESTER,
  runRequest,
} from '../../test/fakes/ports.ts'
import type { Change } from '../contract/changeset.ts'
import type { Selection } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import { EventStream } from './event-stream.ts'
import { LocalEngine } from './local-engine.ts'

/** A directory of which only the time followed what changed below it. */
const echo = (path: string): Change => {
  const directory = { type: 'dir', mode: 0o755, uid: 0, gid: 0, size: 0, mtimeNs: 0n, xattrs: [] } as const
  const now = { ...directory, mtimeNs: 1n }
  return { base: 0, path: Buffer.from(path), kind: 'metadata', old: directory, new: now, findings: [] }
}

async function held(world: FakeWorld): Promise<{ engine: LocalEngine; id: string }> {
  const engine = LocalEngine.over(world.ports, new EventStream(), REQUESTER, async () => undefined)
  const session = await engine.run(runRequest({ afterwards: 'hold' }))
  await engine.finish(session.id)
  return { engine, id: session.id }
}

const only = (...paths: string[]): Selection => ({ only: paths, except: [] })

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof PuzzledError ? error.code : String(error)),
  )

describe('a part of a branch', () => {
  it('that holds nothing is refused, and the branch with everything else stays', async () => {
    const world = fakeWorld()
    world.changes = [echo('src'), fileChange('src/a.txt', 'a')]
    const { engine, id } = await held(world)
    expect(await codeOf(engine.commit(id, only('src')))).toBe('usage')
    expect((await engine.show(id)).state).toBe('held')
    expect(world.log).not.toContain('trash')
  })

  it('of what a failed agent left waits for a person like the whole', async () => {
    const world = fakeWorld()
    world.exit = { ...EXITED, code: 3 }
    world.changes = [fileChange('a.txt', 'a'), fileChange('b.txt', 'b')]
    const { engine, id } = await held(world)
    expect((await engine.commit(id, only('a.txt'))).state).toBe('held')
    expect(world.log).not.toContain('apply')
  })

  it('that is everything is the whole', async () => {
    const { engine, id } = await held(fakeWorld())
    expect((await engine.commit(id, only('a.txt'))).state).toBe('committed')
  })

  it('cannot be approved when the whole is not what was judged any more', async () => {
    const world = fakeWorld()
    world.verdict = 'hold'
    world.changes = [fileChange('a.txt', 'a'), fileChange('b.txt', 'b')]
    const { engine, id } = await held(world)
    world.changes = [fileChange('a.txt', 'made up after the review'), fileChange('b.txt', 'b')]
    const late = engine.approve(id, { by: REQUESTER, digest: null, selection: only('a.txt'), why: '' })
    expect(await codeOf(late)).toBe('changed-since-review')
    expect(world.log).not.toContain('decide approve')
  })
})
