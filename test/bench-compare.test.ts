import { describe, expect, it } from 'vitest'
import { compare, differencesText } from './bench/compare.ts'
import type { BenchReport, Machine } from './bench/report.ts'
import { quantile, summarise } from './bench/statistics.ts'

const machine: Machine = {
  ...{ cpu: '', cpus: 2, memoryGiB: 8, kernel: '', distribution: '', node: '', filesystem: '' },
  load: [0, 0],
}

function report(
  ours: number,
  change: Partial<Record<'spread' | 'memory' | 'base' | 'rate' | 'late', number>> = {},
): BenchReport {
  const { spread = 0.02, memory = 10, base = 10, rate = 100, late = 0.1 } = change
  const time = (median: number) => ({ median, p99: median, spread, rounds: 5, ratio: median / base })
  const results = [
    { case: 'c', baseline: 'peer', goal: null, candidates: { ours: time(ours), peer: time(base) } },
  ]
  const facts = [
    { name: 'memory', value: memory, unit: 'MB' },
    { name: 'rate', value: rate, unit: 'requests/s' },
    { name: 'late', value: late, unit: 'ms' },
  ]
  return {
    ...{ version: 1, at: '', machine },
    areas: { start: { missing: null, failed: null, results, facts, peers: [], seconds: 1 } },
  }
}

const verdicts = (before: BenchReport, after: BenchReport): string[] =>
  compare(before, after).map(({ what, verdict }) => `${what}: ${verdict}`)

describe('two runs', () => {
  it('are the same when the whole machine was slower', () =>
    expect(verdicts(report(5), report(10, { base: 20 }))).toEqual(['c: ours: same', 'rate: same']))

  it('show what became slower than its peer', () => {
    expect(verdicts(report(5), report(7))).toContain('c: ours: worse')
    expect(differencesText(compare(report(5), report(7)))).toMatch(
      /^2 compared, 1 worse, 0 better\n {2}worse/,
    )
  })

  it('show what became faster', () => expect(verdicts(report(7), report(5))).toContain('c: ours: better'))

  it('do not call scatter a change', () =>
    expect(verdicts(report(5), report(7, { spread: 0.4 }))).toContain('c: ours: same'))

  it('show what takes more memory', () =>
    expect(verdicts(report(5), report(5, { memory: 20 }))).toContain('memory: worse'))

  it('show what does fewer things in a second', () => {
    expect(verdicts(report(5), report(5, { rate: 50 }))).toContain('rate: worse')
    expect(verdicts(report(5), report(5, { rate: 200 }))).toContain('rate: better')
  })

  it('do not tell a tenth of a millisecond from none, and no number from nothing', () => {
    expect(verdicts(report(5), report(5, { late: 0.9 }))).not.toContain('late: worse')
    expect(verdicts(report(5), report(5, { late: 90 }))).toContain('late: worse')
    expect(verdicts(report(5), report(5, { late: Number.NaN, base: Number.NaN }))).toEqual(['rate: same'])
  })

  it('say nothing about what only one of them has', () =>
    expect(compare({ ...report(5), areas: {} }, report(9))).toEqual([]))
})

it('the summary of samples', () => {
  expect(summarise([4, 1, 3, 2, 100])).toEqual({ median: 3, p99: 100, spread: 1 / 3, rounds: 5 })
  expect(quantile([1], 0.99)).toBe(1)
})
