import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { METRICS, seriesOf } from '../daemon/metrics/table.ts'
import { parsePromql } from './metrics/promql.ts'

interface Target {
  refId: string
  expr: string
  legendFormat: string
}
interface Panel {
  id: number
  title: string
  gridPos: { h: number; w: number; x: number; y: number }
  targets: Target[]
}

const file = new URL('../systemd/grafana-dashboard.json', import.meta.url)
const dashboard = JSON.parse(readFileSync(file, 'utf8')) as { uid: string; panels: Panel[] }
const LABELS = new Map(
  Object.entries(METRICS).flatMap(([name, shape]) =>
    seriesOf(name, shape).map((series) => [
      series,
      [...Object.keys(shape.labels), ...(series.endsWith('_bucket') ? ['le'] : [])],
    ]),
  ),
)

describe('the dashboard', () => {
  it('asks only for metrics and labels that there are, in queries that parse', () => {
    for (const { title, targets } of dashboard.panels) {
      expect([title, targets.length > 0]).toEqual([title, true])
      for (const { expr, legendFormat } of targets) {
        const selectors = parsePromql(expr)
        expect(selectors.length, expr).toBeGreaterThan(0)
        for (const { metric, labels } of selectors) {
          expect([...LABELS.keys()], expr).toContain(metric)
          for (const label of labels) expect(LABELS.get(metric), expr).toContain(label)
        }
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          expect(expr).toContain(`by (${label})`)
      }
    }
  })

  it('shows every metric of the daemon', () => {
    const text = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n')
    const missing = Object.entries(METRICS)
      .filter(([name, shape]) => !seriesOf(name, shape).some((series) => text.includes(series)))
      .map(([name]) => name)
    expect(missing).toEqual(['puzzled_build', 'puzzled_diff_changes', 'process_start_time_seconds'])
  })

  it('has panels that can be told apart and do not overlap', () => {
    const ids = dashboard.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const cells = dashboard.panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)
    expect(new Set(cells).size).toBe(cells.length)
    expect(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
  })
})

describe('the reader of queries', () => {
  it.each([
    'rate(puzzled_denials_total)',
    'sum by (layer (puzzled_agents)',
    'puzzled_agents[5m]',
    'histogram_quantile(puzzled_agents, 0.5)',
    'puzzled_agents{a=b}',
    'puzzled_agents puzzled_agents',
    'sum(rate(puzzled_agents[5m])))',
  ])('refuses %s', (text) => expect(() => parsePromql(text)).toThrow())
})
