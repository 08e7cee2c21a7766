import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { needs } from '../tier/needs.ts'
import { TestStore } from './branches.ts'
import { makePlace, type Place, projectQuotaMissing } from './filesystems.ts'
import { plainProfile } from './records.ts'

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
  act: (view: string) => void,
): Promise<void> {
  const place: Place = makePlace('xfs', 'prjquota')
  const base = makePlace('host')
  const store = new TestStore(place.path)
  try {
    const branch = await store.fork([base.path], plainProfile({ budgets: { limits, atLimit: 'freeze' } }))
    expect(branch.record.grants).toContainEqual(expect.objectContaining({ what: 'disk space', full: true }))
    act(branch.mount())
    branch.unmount()
  } finally {
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
})
