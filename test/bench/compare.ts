// pure
import type { BenchReport } from './report.ts'

export interface Difference {
  readonly area: string
  readonly what: string
  readonly before: number
  readonly after: number
  /** After divided by before. */
  readonly factor: number
  readonly verdict: 'worse' | 'better' | 'same'
}

/** Ratios move by this much on a quiet machine without any change; below it nothing is said. */
const TOLERANCE = 0.15

/** What moves by less is the clock's or the allocator's doing, whatever the factor. */
const LEAST: Readonly<Record<string, number>> = { ms: 1, MB: 3 }

/**
 * Compares what survives another day and another load: of times the ratio to the baseline of the same case, of facts the
 * value. A difference counts when it is larger than the tolerance and than what the samples scattered in both runs.
 */
export function compare(before: BenchReport, after: BenchReport): Difference[] {
  return Object.entries(after.areas).flatMap(([area, { results, facts }]) => {
    const old = before.areas[area]
    const times = results.flatMap((result) => {
      const known = old?.results.find((one) => one.case === result.case && one.baseline === result.baseline)
      return Object.entries(result.candidates).flatMap(([name, now]) => {
        const then = known?.candidates[name]
        if (then === undefined || name === result.baseline) return []
        const noise = Math.max(TOLERANCE, now.spread + then.spread)
        return differenceOf(
          { area, what: `${result.case}: ${name}`, before: then.ratio, after: now.ratio },
          noise,
        )
      })
    })
    const values = facts.flatMap(({ name, value, unit }) => {
      const then = old?.facts.find((fact) => fact.name === name)?.value
      if (then === undefined || Math.abs(value - then) < (LEAST[unit] ?? 0)) return []
      return differenceOf(
        { area, what: name, before: then, after: value },
        2 * TOLERANCE,
        unit.endsWith('/s'),
      )
    })
    return [...times, ...values]
  })
}

/** Nothing where one of them is no number: its baseline was not measured, or it is none that can be divided. */
function differenceOf(
  pair: Pick<Difference, 'area' | 'what' | 'before' | 'after'>,
  noise: number,
  moreIsBetter = false,
): Difference[] {
  const factor = pair.after / pair.before
  if (!Number.isFinite(factor) || factor <= 0) return []
  const cost = moreIsBetter ? 1 / factor : factor
  const verdict = cost > 1 + noise ? 'worse' : cost < 1 / (1 + noise) ? 'better' : 'same'
  return [{ ...pair, factor, verdict }]
}

export function differencesText(differences: readonly Difference[]): string {
  const told = differences.filter(({ verdict }) => verdict !== 'same')
  const rows = told.map(
    ({ area, what, before, after, factor, verdict }) =>
      `  ${verdict.padEnd(7)} ${factor.toFixed(2)} × (${before.toFixed(2)} → ${after.toFixed(2)})  ${area}: ${what}`,
  )
  const worse = told.filter(({ verdict }) => verdict === 'worse').length
  return [`${differences.length} compared, ${worse} worse, ${told.length - worse} better`, ...rows, ''].join(
    '\n',
  )
}
