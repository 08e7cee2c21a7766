import { describe, expect, it } from 'vitest'
import { earliestAfter, timeOfCommit } from './clock-step.ts'

const HOUR = 3_600_000
const HOUR_NS = 3_600_000_000_000n
const FORK = 1_800_000_000_000_000_000n
const then = { boot: 'a', bootedAt: 1_799_999_000_000 }

describe('what was changed after a moment', () => {
  it('is newer than it while nobody sets the clock, or sets it forward', () => {
    for (const step of [0, -50, HOUR])
      expect(earliestAfter(FORK, then, { ...then, bootedAt: then.bootedAt + step })).toBe(FORK)
  })

  it('may be older by as much as the clock was set back, and by what a reading is wrong', () => {
    const now = { ...then, bootedAt: then.bootedAt - HOUR }
    expect(earliestAfter(FORK, then, now)).toBe(FORK - HOUR_NS - 100_000_000n)
  })

  it('is no older than the boot after a boot with a clock that lags', () => {
    expect(earliestAfter(FORK, then, { boot: 'b', bootedAt: 5 })).toBe(5_000_000n)
    expect(earliestAfter(FORK, then, { boot: 'b', bootedAt: 1_800_000_000_001 })).toBe(FORK)
  })

  it('is what it seems where the record of a branch is older than this rule', () =>
    expect(earliestAfter(FORK, undefined, { boot: 'b', bootedAt: 5 })).toBe(FORK))
})

describe('the time of a commit', () => {
  it('is the clock’s', () => expect(timeOfCommit(new Date(7), undefined)).toBe('1970-01-01T00:00:00.007Z'))

  it('is later than that of the branch’s commit before, whatever the clock says', () => {
    expect(timeOfCommit(new Date(7), '1970-01-01T00:00:00.005Z')).toBe('1970-01-01T00:00:00.007Z')
    expect(timeOfCommit(new Date(7), '1970-01-01T00:00:09.000Z')).toBe('1970-01-01T00:00:09.001Z')
  })
})
