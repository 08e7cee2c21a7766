import { describe, expect, it } from 'vitest'
import type { DiskStat } from '../lib/disk.ts'
import { SurveyTable } from './survey-table.ts'

const stat = (change: Partial<DiskStat>): DiskStat => ({
  ...{ kind: 'file', dev: 1, ino: 2, mode: 0o644, uid: 0, gid: 0, size: 3 },
  ...{ mtimeNs: 4n, ctimeNs: 5n, nlink: 1, allocated: 0, sealed: null },
  ...change,
})

describe('the table of a survey', () => {
  it('gives back what was put into each row', () => {
    const table = new SurveyTable(3)
    table.set(0, 10, stat({ ino: 20, size: 30 }))
    table.set(1, 11, stat({ kind: 'dir', ino: 21, size: 31, mtimeNs: 41n }))
    table.set(2, 12, null)
    expect([0, 1, 2].map((row) => table.parent(row))).toEqual([10, 11, 12])
    expect(table.target(0)).toEqual({ ino: 20, dir: false, size: 30, mtimeNs: 4n })
    expect(table.target(1)).toEqual({ ino: 21, dir: true, size: 31, mtimeNs: 41n })
    expect(table.target(2)).toBeNull()
  })

  it.each([
    ['before 1970', -1n],
    ['long before 1970', -2_000_000_000_000_000_001n],
    ['of today', 1_700_000_000_123_456_789n],
    ['of the year 2446, which 64 bits of nanoseconds do not reach', 15_032_385_535_999_999_999n],
    ['that only the widest filesystem has', 9_223_372_036_854_775_807_999_999_999n],
    ['as early as that', -9_223_372_036_854_775_808_000_000_000n],
  ])('keeps a time %s exactly', (_, mtimeNs) => {
    const table = new SurveyTable(1)
    table.set(0, 1, stat({ mtimeNs }))
    expect(table.target(0)?.mtimeNs).toBe(mtimeNs)
  })

  it('keeps the largest numbers that a stat has', () => {
    const table = new SurveyTable(1)
    const { MAX_SAFE_INTEGER: most } = Number
    table.set(0, most, stat({ ino: most, size: most }))
    expect(table.parent(0)).toBe(most)
    expect(table.target(0)).toMatchObject({ ino: most, size: most })
  })

  it('holds nothing in a row that was not filled, or that it does not have', () => {
    const table = new SurveyTable(1)
    for (const row of [0, 1]) expect([table.parent(row), table.target(row)]).toEqual([0, null])
  })
})
