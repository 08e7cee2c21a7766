/** A reader of OpenMetrics 1.0 that is stricter than the collectors that are in use: whatever it refuses is our mistake. */

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly name: string
  readonly type: string
  readonly unit: string
  readonly help: string
  readonly samples: readonly Sample[]
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  gauge: [''],
  info: ['_info'],
  histogram: ['_bucket', '_sum', '_count'],
}

export function parseOpenMetrics(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  if (!text.endsWith('\n# EOF\n') && text !== '# EOF\n') throw new Error('it does not end in "# EOF"')
  let current: (Family & { samples: Sample[] }) | undefined
  for (const line of text.split('\n').slice(0, -2)) {
    const [, keyword, name = '', rest = ''] = /^# (TYPE|UNIT|HELP) (\S+) (.*)$/.exec(line) ?? []
    if (keyword === 'TYPE') {
      if (families.has(name)) throw new Error(`two families ${name}`)
      current = { name, type: rest, unit: '', help: '', samples: [] }
      families.set(name, current)
    } else if (current === undefined) throw new Error(`"${line}" stands before any family`)
    else if (keyword !== undefined) current = described(families, current, keyword, name, rest)
    else current.samples.push(sampleOf(current, line))
  }
  for (const family of families.values()) checkFamily(family)
  return families
}

function described(
  families: Map<string, Family>,
  current: Family & { samples: Sample[] },
  keyword: string,
  name: string,
  text: string,
): Family & { samples: Sample[] } {
  if (name !== current.name) throw new Error(`${keyword} of ${name} among those of ${current.name}`)
  const more = { ...current, ...(keyword === 'UNIT' ? { unit: text } : { help: unescaped(text) }) }
  families.set(name, more)
  return more
}

function sampleOf(family: Family, line: string): Sample {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
  if (match === null) throw new Error(`"${line}" is no sample`)
  const [, name = '', inner = '', number = ''] = match
  const suffix = name.startsWith(family.name) ? name.slice(family.name.length) : undefined
  if (suffix === undefined || SUFFIXES[family.type]?.includes(suffix) !== true)
    throw new Error(`${name} is no sample of the ${family.type} ${family.name}`)
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number)
  if (!/^[+-]?(\d+(\.\d+)?([eE][+-]?\d+)?|Inf)$/.test(number)) throw new Error(`"${number}" is no number`)
  return { name, labels: labelsOf(inner), value }
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  const pattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y
  for (let at = 0; at < text.length; at = pattern.lastIndex) {
    pattern.lastIndex = at
    const [, name = '', value = ''] = pattern.exec(text) ?? []
    if (name === '' || name in labels) throw new Error(`the labels {${text}} are malformed`)
    labels[name] = unescaped(value)
  }
  return labels
}

const unescaped = (text: string): string =>
  text.replace(/\\([\\"n])/g, (_all, what: string) => (what === 'n' ? '\n' : what))

function checkFamily({ name, type, unit, samples }: Family): void {
  if (SUFFIXES[type] === undefined) throw new Error(`${name} has the unknown type ${type}`)
  if (unit !== '' && !name.endsWith(`_${unit}`)) throw new Error(`${name} does not end in its unit ${unit}`)
  if (type === 'counter' && name.endsWith('_total')) throw new Error(`${name}: the family has no _total`)
  const keys = samples.map((sample) => `${sample.name} ${JSON.stringify(sample.labels)}`)
  if (new Set(keys).size !== keys.length) throw new Error(`${name} says something twice`)
  if (type !== 'gauge' && samples.some(({ value }) => value < 0)) throw new Error(`${name} is negative`)
  if (type === 'histogram') checkHistogram(name, samples)
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const without = ({ le: _le, ...rest }: Readonly<Record<string, string>>): string => JSON.stringify(rest)
  for (const key of new Set(samples.map(({ labels }) => without(labels)))) {
    const own = samples.filter(({ labels }) => without(labels) === key)
    const buckets = own.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) =>
      labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le),
    )
    const ascending = (values: readonly number[], strictly: boolean): boolean =>
      values.every((value, at) => at === 0 || value > (values[at - 1] ?? 0) - (strictly ? 0 : 1e-9))
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${name} has no bucket for the rest`)
    if (!ascending(bounds, true)) throw new Error(`${name}: its buckets are out of order`)
    if (
      !ascending(
        buckets.map(({ value }) => value),
        false,
      )
    )
      throw new Error(`${name} is not cumulative`)
    if (buckets.some(({ labels }) => labels.le !== '+Inf' && !/\./.test(labels.le ?? '')))
      throw new Error(`${name}: a bound is not written as a float`)
    const count = own.find((sample) => sample.name === `${name}_count`)?.value
    if (count !== buckets.at(-1)?.value) throw new Error(`${name}: count and last bucket differ`)
    if (!own.some((sample) => sample.name === `${name}_sum`)) throw new Error(`${name} has no sum`)
  }
}
