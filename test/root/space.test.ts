import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { BranchSpace, type SpaceReader } from '../../daemon/branch/space.ts'
import { plainProfile } from '../fixtures/records.ts'
import { needs, root } from '../tier/needs.ts'
import { TestStore } from './branches.ts'
import { makePlace } from './filesystems.ts'

const MIB = 1 << 20
const LIMITS = { disk: 8 * MIB, inodes: 1000 }

/** A branch in a store without project quota, on a filesystem of 64 MiB that others write to as well. */
async function inSmallStore(
  act: (at: { view: string; others: string; reader: SpaceReader; clock: { now: number } }) => Promise<void>,
): Promise<void> {
  const place = makePlace('tmpfs', 'size=64m')
  const base = makePlace('host')
  const store = new TestStore(place.path)
  const clock = { now: 0 }
  const space = new BranchSpace(store, () => clock.now)
  try {
    const profile = plainProfile({ budgets: { limits: LIMITS, atLimit: 'freeze' } })
    const branch = await store.fork([base.path], profile)
    expect(branch.record.grants).toContainEqual(expect.objectContaining({ what: 'disk space', full: false }))
    const reader = space.readerOf(branch.record.id, LIMITS)
    await act({ view: branch.mount(), others: place.path, reader, clock })
    branch.unmount()
  } finally {
    await space.close()
    store.remove()
    base.remove()
    place.remove()
  }
}

const write = (path: string, mib: number): void => writeFileSync(path, Buffer.alloc(mib * MIB, 1))
const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100))

describe('the space of a branch whose store has no project quota', () => {
  const it = needs(root)

  it('is measured at once when it could be too much, not only when it is time', () =>
    inSmallStore(async ({ view, reader }) => {
      write(join(view, 'a'), 4)
      expect(reader.read()).toEqual({})
      await soon()
      // The clock stands still: nothing but the growth of the filesystem can be the reason.
      expect(reader.read()).toEqual({})
      write(join(view, 'b'), 5)
      reader.read()
      await expect.poll(() => reader.read().disk).toBeGreaterThanOrEqual(9 * MIB)
    }))

  it('is not what others write', () =>
    inSmallStore(async ({ view, others, reader }) => {
      write(join(view, 'a'), 1)
      write(join(others, 'theirs'), 20)
      reader.read()
      await expect.poll(() => reader.read().disk).toBeGreaterThanOrEqual(MIB)
      expect(reader.read().disk).toBeLessThan(2 * MIB)
    }))

  it('ends before the filesystem is full, whatever the limit: reading is refused until there is room', () =>
    inSmallStore(async ({ view, others, reader }) => {
      write(join(view, 'a'), 1)
      reader.read()
      write(join(others, 'theirs'), 61)
      expect(() => reader.read()).toThrow(expect.objectContaining({ code: 'no-space' }))
      rmSync(join(others, 'theirs'))
      expect(() => reader.read()).not.toThrow()
    }))
})
