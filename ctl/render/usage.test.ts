import { describe, expect, it } from 'vitest'
import { plain } from './paint.ts'
import { usageText } from './usage.ts'

describe('what a branch uses', () => {
  it('is nothing where none runs', () => expect(usageText({ budgets: {}, pressure: {} }, plain)).toBe(''))

  it('stands beside what it may, in units of people', () => {
    const budgets = {
      wall: { used: 200.7, limit: 7500 },
      cpu: { used: 0.44, limit: null },
      memory: { used: 12_300_000, limit: 8e9 },
      pids: { used: 3, limit: 2048 },
    }
    expect(usageText({ budgets, pressure: {} }, plain)).toBe(
      '      uses  wall 3m20s of 2h5m, cpu 0.4s, memory 12.3 MB of 8.0 GB, pids 3 of 2048\n',
    )
    const times = [59.9, 60, 3600].map((used) =>
      usageText({ budgets: { wall: { used, limit: null } }, pressure: {} }, plain),
    )
    expect(times.map((line) => line.trim())).toEqual(['uses  wall 59s', 'uses  wall 1m', 'uses  wall 1h'])
  })

  it('has no budget of bytes in digits', () => {
    const budgets = Object.fromEntries(
      (['memory', 'disk', 'egress', 'queued'] as const).map((kind) => [kind, { used: 0, limit: 67_108_864 }]),
    )
    expect(usageText({ budgets, pressure: {} }, plain)).not.toContain('67108864')
  })

  it('is told with what it waits for, when that is anything', () => {
    const pressure = {
      cpu: { some10: 41.7, full10: 3 },
      memory: { some10: 0.2, full10: 0 },
      io: { some10: 3, full10: 0 },
    }
    expect(usageText({ budgets: {}, pressure }, plain)).toBe(
      '     waits  for cpu 42 %, io 3 % of the last 10 s\n',
    )
  })
})
