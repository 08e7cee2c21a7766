import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expired, type KeptCommit } from './retention.ts'

const DAY = 24 * 3600 * 1000
const NOW = Date.parse('2026-06-30T00:00:00.000Z')
const kept = (commit: string, daysAgo: number, bytes = 10): KeptCommit => ({
  ...{ commit, bytes, at: new Date(NOW - daysAgo * DAY).toISOString() },
})
const ALL = { count: 1000, ageMs: 1e15, bytes: 1e15 }
const gone = (commits: KeptCommit[], limits: Partial<typeof ALL>): string[] =>
  expired(commits, { ...ALL, ...limits }, NOW).map(({ commit }) => commit)

describe('retention', () => {
  const three = [kept('old', 9), kept('new', 1), kept('middle', 5)]

  it('keeps the newest, and removes the oldest first', () => {
    expect(gone(three, {})).toEqual([])
    expect(gone(three, { count: 1 })).toEqual(['old', 'middle'])
    expect(gone(three, { count: 0 })).toEqual(['old', 'middle', 'new'])
  })

  it('counts age and size, whichever limit is reached first', () => {
    expect(gone(three, { ageMs: 6 * DAY })).toEqual(['old'])
    expect(gone(three, { bytes: 20 })).toEqual(['old'])
    expect(gone(three, { bytes: 25, ageMs: 2 * DAY })).toEqual(['old', 'middle'])
    expect(gone([kept('huge', 1, 1000)], { bytes: 20 })).toEqual(['huge'])
  })

  it('leaves no more than the limits, and nothing that is older than what goes', () => {
    const commits = fc.array(fc.record({ days: fc.nat(40), bytes: fc.nat(100) }), { maxLength: 20 })
    const limits = fc.record({
      count: fc.nat(10),
      ageMs: fc.nat(30).map((days) => days * DAY),
      bytes: fc.nat(500),
    })
    fc.assert(
      fc.property(commits, limits, (list, retention) => {
        const all = list.map(({ days, bytes }, index) => kept(`c${index}`, days, bytes))
        const removed = new Set(expired(all, retention, NOW))
        const left = all.filter((each) => !removed.has(each))
        expect(left.length).toBeLessThanOrEqual(retention.count)
        expect(left.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(retention.bytes)
        for (const { at } of left) expect(NOW - Date.parse(at)).toBeLessThanOrEqual(retention.ageMs)
        for (const lost of removed) expect(left.every(({ at }) => at >= lost.at)).toBe(true)
      }),
    )
  })
})
