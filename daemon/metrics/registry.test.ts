import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseOpenMetrics } from '../../test/metrics/openmetrics.ts'
import { Registry } from './registry.ts'
import { METRICS, type MetricName, seriesOf } from './table.ts'

const NAMES = Object.keys(METRICS) as MetricName[]

describe('the text of the metrics', () => {
  it('is OpenMetrics before anything was counted, and every metric is in it', () => {
    const families = parseOpenMetrics(new Registry().text())
    expect([...families.keys()]).toEqual(NAMES)
    expect(families.get('puzzled_warnings')?.samples).toEqual([
      { name: 'puzzled_warnings_total', labels: {}, value: 0 },
    ])
  })

  it('cumulates buckets; a bound belongs to its bucket', () => {
    const registry = new Registry()
    for (const value of [0.001, 0.002, 7])
      registry.observe('puzzled_gate_seconds', value, { verdict: 'hold' })
    const samples = parseOpenMetrics(registry.text()).get('puzzled_gate_seconds')?.samples ?? []
    const at = (le: string): number | undefined => samples.find(({ labels }) => labels.le === le)?.value
    expect([at('0.001'), at('0.0025'), at('5.0'), at('+Inf')]).toEqual([1, 2, 2, 3])
    expect(samples.at(-2)).toEqual({
      name: 'puzzled_gate_seconds_sum',
      labels: { verdict: 'hold' },
      value: 7.003,
    })
  })

  it('keeps the number of series within the table, whatever is counted', () => {
    const registry = new Registry()
    const most = new Map(
      NAMES.map((name) => {
        const { labels, type } = METRICS[name]
        return [
          name,
          type === 'info' ? 1 : Object.values(labels).reduce((all, { length }) => all * (length + 1), 1),
        ]
      }),
    )
    fc.assert(
      fc.property(
        fc.constantFrom(...NAMES.filter((name) => METRICS[name].type !== 'info')),
        fc.string(),
        (name, said) => {
          const labels = Object.fromEntries(Object.keys(METRICS[name].labels).map((label) => [label, said]))
          registry.count(name, { ...labels, [said]: said })
        },
      ),
      { numRuns: 2000 },
    )
    for (const [name, { samples }] of parseOpenMetrics(registry.text())) {
      const series = new Set(samples.map(({ labels: { le: _le, ...rest } }) => JSON.stringify(rest)))
      expect([name, series.size <= (most.get(name as MetricName) ?? 0)]).toEqual([name, true])
      for (const { labels } of samples)
        for (const [label, value] of Object.entries(labels))
          if (label !== 'le')
            expect([...(METRICS[name as MetricName].labels[label] ?? []), 'other']).toContain(value)
    }
  })

  it('escapes what is the daemon’s own, and a counter never falls', () => {
    const registry = new Registry()
    registry.set('puzzled_build', 1, { version: 'a"b\\c\nd' })
    registry.count('puzzled_warnings', {}, 5)
    registry.count('puzzled_warnings', {}, -3)
    const families = parseOpenMetrics(registry.text())
    expect(families.get('puzzled_build')?.samples[0]?.labels).toEqual({ version: 'a"b\\c\nd' })
    expect(families.get('puzzled_warnings')?.samples[0]?.value).toBe(5)
  })

  it('has names and units as the standard wants them', () => {
    for (const name of NAMES) {
      const { unit, help } = METRICS[name]
      expect(name).toMatch(/^(puzzled|process)_[a-z_]+$/)
      if (unit !== undefined) expect(name.endsWith(`_${unit}`)).toBe(true)
      expect(help).toMatch(/\.$/)
      expect(seriesOf(name, METRICS[name]).length).toBeGreaterThan(0)
    }
  })
})

describe('the reader that these tests use', () => {
  const good = new Registry().text()
  it.each([
    ['no end', good.slice(0, -6)],
    ['a sample of another family', good.replace('# EOF', 'other 1\n# EOF')],
    ['a counter without _total', '# TYPE a counter\na 1\n# EOF\n'],
    ['a unit that is not in the name', '# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n'],
    ['a quote in a label', '# TYPE a gauge\na{b="c"d"} 1\n# EOF\n'],
    ['the same twice', '# TYPE a gauge\na 1\na 1\n# EOF\n'],
    [
      'falling buckets',
      '# TYPE a histogram\na_bucket{le="1.0"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n# EOF\n',
    ],
    ['no last bucket', '# TYPE a histogram\na_bucket{le="1.0"} 2\na_sum 1\na_count 2\n# EOF\n'],
  ])('refuses %s', (_what, text) => expect(() => parseOpenMetrics(text)).toThrow())
})
