import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { BranchSpace, type SpaceReader } from '../../daemon/branch/space.ts'
import { plainProfile } from '../fixtures/records.ts'
import { needs } from '../tier/needs.ts'
import { TestStore } from './branches.ts'
import { makePlace, type Place, projectQuotaMissing } from './filesystems.ts'

const it = needs(projectQuotaMissing())

const errnoOf = (run: () => void): string => {
  try {
    run()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

async function inBranch(
  limits: { disk?: number; inodes?: number },
  act: (view: string, reader: SpaceReader) => void,
): Promise<void> {
  const place: Place = makePlace('xfs', 'prjquota')
  const base = makePlace('host')
  const store = new TestStore(place.path)
  const space = new BranchSpace(store)
  try {
    const branch = await store.fork([base.path], plainProfile({ budgets: { limits, atLimit: 'freeze' } }))
    expect(branch.record.grants).toContainEqual(expect.objectContaining({ what: 'disk space', full: true }))
    act(branch.mount(), space.readerOf(branch.record.id, limits))
    branch.unmount()
  } finally {
    await space.close()
    store.remove()
    base.remove()
    place.remove()
  }
}

describe('project quota of a branch', () => {
  it('stops write(2) at the bytes', () =>
    inBranch({ disk: 8 << 20 }, (view) => {
      const fd = openSync(join(view, 'f'), 'w')
      const block = Buffer.alloc(1 << 20)
      expect(errnoOf(() => writeSync(fd, block))).toBe('none')
      expect(
        errnoOf(() => {
          for (let written = 0; written < 16; written++) writeSync(fd, block)
        }),
      ).toBe('ENOSPC')
      closeSync(fd)
    }))

  it('stops new files at the inodes', () =>
    inBranch({ inodes: 50 }, (view) => {
      expect(errnoOf(() => writeFileSync(join(view, 'first'), ''))).toBe('none')
      expect(
        errnoOf(() => {
          for (let file = 0; file < 100; file++) writeFileSync(join(view, `f${file}`), '')
        }),
      ).toBe('ENOSPC')
    }))

  it('that is used up to the last byte is read as such, and not as a disk that is full', () =>
    inBranch({ disk: 8 << 20 }, (view, reader) => {
      expect(reader.held).toBe(true)
      const fd = openSync(join(view, 'f'), 'w')
      const [block, sector] = [Buffer.alloc(1 << 20), Buffer.alloc(4096)]
      for (const bytes of [block, sector])
        while (errnoOf(() => writeSync(fd, bytes)) === 'none') expect(reader.read().disk).toBeGreaterThan(0)
      closeSync(fd)
      expect(reader.read().disk).toBeGreaterThan(7.7 * 2 ** 20)
    }))
})
