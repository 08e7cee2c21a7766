import { describe, expect, it } from 'vitest'
import { compare, comparisonText } from './bench/compare.ts'
import type { BenchResult } from './bench/harness.ts'
import type { BenchReport, Machine } from './bench/report.ts'
import { quantile, summarise } from './bench/statistics.ts'

const machine: Machine = {
  ...{ cpu: '', cpus: 2, memoryGiB: 8, kernel: '', distribution: '', node: '', filesystem: '' },
  load: [0, 0],
}

/** Without a peer: the baseline is ours. */
const ownCase = (median: number): BenchResult => ({
  ...{ case: 'alone', baseline: 'first', own: true, goal: null },
  candidates: { first: { median, p99: median, spread: 0.02, rounds: 5, ratio: 1 } },
})

function report(
  ours: number,
  change: Partial<Record<'spread' | 'memory' | 'base' | 'rate' | 'late' | 'alone' | 'other', number>> = {},
): BenchReport {
  const { spread = 0.02, memory = 10, base = 10, rate = 100, late = 0.1, alone = 3, other = 4 } = change
  const time = (median: number) => ({ median, p99: median, spread, rounds: 5, ratio: median / base })
  const results = [
    {
      case: 'c',
      baseline: 'peer',
      goal: null,
      candidates: { puzzled: time(ours), peer: time(base), another: time(other) },
    },
    ownCase(alone),
  ]
  const facts = [
    { name: 'memory', value: memory, unit: 'MB' },
    { name: 'rate', value: rate, unit: 'requests/s' },
    { name: 'late', value: late, unit: 'ms' },
    { name: '1 at a time: squid, forwarded: rate', value: other, unit: 'requests/s' },
  ]
  return {
    ...{ version: 1, at: '', machine },
    areas: { start: { missing: null, failed: null, results, facts, peers: [], seconds: 1 } },
  }
}

const verdicts = (before: BenchReport, after: BenchReport): string[] =>
  compare(before, after).differences.map(({ what, verdict }) => `${what}: ${verdict}`)

describe('two runs', () => {
  it('are the same when the whole machine was slower', () =>
    expect(verdicts(report(5), report(10, { base: 20, rate: 50, late: 0.2, alone: 6 }))).toEqual([
      'c: puzzled: same',
      'alone: first: same',
      'rate: same',
    ]))

  it('show what became slower than its peer, by how much, and how far the samples scattered', () => {
    expect(verdicts(report(5), report(7))).toContain('c: puzzled: worse')
    const text = comparisonText(compare(report(5), report(7)), 'yesterday')
    expect(text).toContain('Compared with the run of yesterday: 3 figures, 1 worse, 0 better')
    expect(text).toContain(
      '  worse  1.40 × (counts from 1.15)  start: c: puzzled\n         0.500 × ± 2 % → 0.700 × ± 2 %\n',
    )
  })

  it('show what became slower and has no peer', () => {
    expect(verdicts(report(5), report(5, { alone: 4 }))).toContain('alone: first: worse')
    expect(verdicts(report(5), report(10, { base: 20, alone: 3 }))).toContain('alone: first: better')
  })

  it('say when it was another machine, and what was not measured again', () => {
    const other = { ...report(5), machine: { ...machine, cpus: 64 } }
    expect(comparisonText(compare(report(5), other), '')).toContain('cpus 2 → 64')
    const { start } = report(5).areas
    const less = { ...report(5), areas: start === undefined ? {} : { start: { ...start, facts: [] } } }
    expect(compare(report(5), less).lost.slice(0, 3)).toEqual(['start: memory', 'start: rate', 'start: late'])
    expect(compare(report(5), report(5)).lost).toEqual([])
  })

  it('say nothing about what became of a peer beside another', () =>
    expect(verdicts(report(5), report(5, { other: 1 }))).toEqual(verdicts(report(5), report(5))))

  it('show what became faster', () => expect(verdicts(report(7), report(5))).toContain('c: puzzled: better'))

  it('do not call scatter a change', () =>
    expect(verdicts(report(5), report(7, { spread: 0.4 }))).toContain('c: puzzled: same'))

  it('show what takes more memory', () =>
    expect(verdicts(report(5), report(5, { memory: 20 }))).toContain('memory: worse'))

  it('show what does fewer things in a second', () => {
    expect(verdicts(report(5), report(5, { rate: 50 }))).toContain('rate: worse')
    expect(verdicts(report(5), report(5, { rate: 200 }))).toContain('rate: better')
  })

  it('do not tell a tenth of a millisecond from none, and no number from nothing', () => {
    expect(verdicts(report(5), report(5, { late: 0.9 }))).not.toContain('late: worse')
    expect(verdicts(report(5), report(5, { late: 90 }))).toContain('late: worse')
    expect(verdicts(report(5), report(5, { late: Number.NaN, base: Number.NaN }))).toEqual([
      'alone: first: same',
      'rate: same',
    ])
  })

  it('say nothing about what only one of them has', () =>
    expect(compare({ ...report(5), areas: {} }, report(9)).differences).toEqual([]))
})

it('the summary of samples', () => {
  expect(summarise([4, 1, 3, 2, 100])).toEqual({ median: 3, p99: 100, spread: 1 / 3, rounds: 5 })
  expect(quantile([1], 0.99)).toBe(1)
})
