// pure
import { METRICS, type MetricName, type MetricShape } from './table.ts'

type Labels = Readonly<Record<string, string>>

interface Series {
  readonly labels: string
  value: number
  /** Not cumulated, one more than there are bounds; empty where the metric is no histogram. */
  readonly buckets: number[]
}

/**
 * The values of `METRICS`. Counting is a look-up and an addition; nothing is computed before somebody asks for the text.
 * The number of series is bounded by the table, whatever is counted.
 */
export class Registry {
  readonly #series = new Map<MetricName, Map<string, Series>>()
  readonly #readers: (() => void)[] = []

  /** Adds to a counter. A value that is not in the table counts as `other`. */
  count(name: MetricName, labels: Labels = {}, by = 1): void {
    // A counter that falls would be taken for a restart by whoever reads it.
    if (by > 0) this.#find(name, labels).value += by
  }

  /** Sets a gauge, or a counter whose sum somebody else keeps. */
  set(name: MetricName, value: number, labels: Labels = {}): void {
    this.#find(name, labels).value = value
  }

  observe(name: MetricName, value: number, labels: Labels = {}): void {
    const series = this.#find(name, labels)
    const bounds = METRICS[name].buckets ?? []
    const at = bounds.findIndex((bound) => value <= bound)
    const bucket = at < 0 ? bounds.length : at
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1
    series.value += value
  }

  /** Called right before each text: the place for what is cheaper to read than to follow. */
  beforeText(read: () => void): void {
    this.#readers.push(read)
  }

  /** OpenMetrics 1.0. */
  text(): string {
    for (const read of this.#readers) read()
    const blocks = Object.entries(METRICS).map(([name, shape]) => this.#block(name as MetricName, shape))
    return `${blocks.join('')}# EOF\n`
  }

  #find(name: MetricName, labels: Labels): Series {
    const known = this.#series.get(name) ?? new Map<string, Series>()
    this.#series.set(name, known)
    const key = labelText(METRICS[name], labels)
    const found = known.get(key)
    if (found !== undefined) return found
    const bounds = METRICS[name].buckets
    const fresh = {
      labels: key,
      value: 0,
      buckets: bounds === undefined ? [] : new Array<number>(bounds.length + 1).fill(0),
    }
    known.set(key, fresh)
    return fresh
  }

  #block(name: MetricName, shape: MetricShape): string {
    const head = [
      `# TYPE ${name} ${shape.type}`,
      ...(shape.unit === undefined ? [] : [`# UNIT ${name} ${shape.unit}`]),
      `# HELP ${name} ${escaped(shape.help)}`,
    ]
    const series = [...(this.#series.get(name)?.values() ?? [])]
    // A metric without labels is there from the beginning: zero is an answer, absence is not.
    if (series.length === 0 && Object.keys(shape.labels).length === 0 && shape.type !== 'info')
      series.push({ labels: '', value: 0, buckets: [] })
    return `${[...head, ...series.flatMap((one) => lines(name, shape, one))].join('\n')}\n`
  }
}

function lines(name: string, shape: MetricShape, series: Series): string[] {
  const { labels, value } = series
  if (shape.type === 'info') return [`${name}_info${braced(labels)} 1`]
  if (shape.type === 'counter') return [`${name}_total${braced(labels)} ${value}`]
  if (shape.type === 'gauge') return [`${name}${braced(labels)} ${value}`]
  let below = 0
  const bounds = [...(shape.buckets ?? []).map(boundText), '+Inf']
  const buckets = bounds.map((bound, at) => {
    below += series.buckets[at] ?? 0
    const all = labels === '' ? `le="${bound}"` : `${labels},le="${bound}"`
    return `${name}_bucket{${all}} ${below}`
  })
  return [...buckets, `${name}_sum${braced(labels)} ${value}`, `${name}_count${braced(labels)} ${below}`]
}

/** The standard wants `1.0`, so that the same bound is the same text in every program. */
const boundText = (bound: number): string => (Number.isInteger(bound) ? bound.toFixed(1) : String(bound))

const braced = (labels: string): string => (labels === '' ? '' : `{${labels}}`)

/** In the order of the table. Only `info` takes values from outside of it: they are the daemon's own. */
function labelText(shape: MetricShape, labels: Labels): string {
  const names = shape.type === 'info' ? Object.keys(labels) : Object.keys(shape.labels)
  return names
    .map((name) => {
      const value = labels[name] ?? ''
      const known = shape.type === 'info' || shape.labels[name]?.includes(value) === true
      return `${name}="${escaped(known ? value : 'other')}"`
    })
    .join(',')
}

const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
