import { describe, expect, it } from 'vitest'
import { changesetOf, fileChange } from '../../test/fakes/ports.ts'
import type { Changeset } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { ChangePages, requireOnePage } from './change-pages.ts'

const many = (count: number, length = 1): Changeset =>
  changesetOf(Array.from({ length: count }, (_, n) => fileChange(`${n}`.padStart(length, 'x'), 'content')))

/** An engine whose branch is what was set last, and that counts how often it was compared. */
function engineOf(changeset: Changeset) {
  const engine = { now: changeset, asked: 0, changes: async () => engine.now }
  const counted = async (): Promise<Changeset> => {
    engine.asked++
    return engine.now
  }
  engine.changes = counted
  return engine
}

const first = { selection: null, digest: '', from: 0, limit: 1000 }

async function readAll(pages: ChangePages, engine: ReturnType<typeof engineOf>): Promise<Changeset> {
  const changes = []
  for (let request = first; ; ) {
    const { changeset, next } = await pages.page(engine, 'b', request)
    changes.push(...changeset.changes)
    if (next === null) return { ...changeset, changes }
    request = { ...first, digest: changeset.digest, from: next }
  }
}

describe('changes in pages', () => {
  it('are together what one answer would be, and compared once', async () => {
    for (const count of [0, 1, 999, 1000, 1001, 3500]) {
      const engine = engineOf(many(count))
      expect(await readAll(new ChangePages(), engine)).toEqual(engine.now)
      expect(engine.asked).toBe(1)
    }
  })

  it('are small where the names are long, and never empty before the end', async () => {
    const engine = engineOf(many(100, 1 << 20))
    const { changeset, next } = await new ChangePages().page(engine, 'b', { ...first, limit: 0 })
    expect([changeset.changes.length, next]).toEqual([1, 1])
    const second = await new ChangePages().page(engine, 'b', first)
    expect(second.changeset.changes.length).toBeLessThan(5)
    expect(await readAll(new ChangePages(), engine)).toEqual(engine.now)
  })

  it('of a branch that changed meanwhile go on as they began, or are refused', async () => {
    const engine = engineOf(many(2500))
    const pages = new ChangePages()
    const { changeset } = await pages.page(engine, 'b', first)
    const began = engine.now
    engine.now = many(2600)
    const second = { ...first, digest: changeset.digest, from: 1000 }
    expect((await pages.page(engine, 'b', second)).changeset.changes).toEqual(began.changes.slice(1000, 2000))
    pages.close()
    await expect(pages.page(engine, 'b', second)).rejects.toMatchObject({ code: 'changed-since-review' })
    // Not another branch's, nor another selection's.
    await pages.page(engine, 'b', first)
    await expect(pages.page(engine, 'c', second)).rejects.toBeInstanceOf(PuzzledError)
  })

  it('are forgotten: at their end, when nobody reads on, and when too many are begun', async () => {
    const engine = engineOf(many(1500))
    const pages = new ChangePages(5)
    const { changeset } = await pages.page(engine, 'b', first)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const second = { ...first, digest: changeset.digest, from: 1000 }
    await pages.page(engine, 'b', second)
    await pages.page(engine, 'b', second)
    expect(engine.asked).toBe(3)
    const patient = new ChangePages()
    for (const id of ['a', 'b', 'c', 'd']) await patient.page(engine, id, first)
    await patient.page(engine, 'd', second)
    expect(engine.asked).toBe(7)
    await patient.page(engine, 'a', second)
    expect(engine.asked).toBe(8)
  })

  it('are demanded of whoever asks for too many at once', () => {
    expect(requireOnePage(many(10_000)).changes.length).toBe(10_000)
    expect(() => requireOnePage(many(10_001))).toThrow(/10001 changes/)
  })
})
