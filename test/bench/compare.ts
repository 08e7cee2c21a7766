// pure
import type { BenchResult } from './harness.ts'
import type { BenchReport } from './report.ts'
import { quantile } from './statistics.ts'

export interface Difference {
  readonly area: string
  readonly what: string
  readonly unit: string
  readonly before: number
  readonly after: number
  /** How far the samples of each run scattered, as a part of the median; undefined where there was one. */
  readonly spread?: readonly [before: number, after: number]
  /** After divided by before. */
  readonly factor: number
  /** What the factor had to pass. */
  readonly bound: number
  readonly verdict: 'worse' | 'better' | 'same'
}

export interface Comparison {
  readonly differences: readonly Difference[]
  /** How long the programs of others took, divided by how long they took then. */
  readonly pace: number
  /** What both runs were to measure and only the one before did. */
  readonly lost: readonly string[]
  /** What about the machine is not as it was. */
  readonly machine: readonly string[]
}

/** Ratios move by this much on a quiet machine without any change; below it nothing is said. */
const TOLERANCE = 0.15

/** What moves by less is the clock's or the allocator's doing, whatever the factor. */
const LEAST: Readonly<Record<string, number>> = { ms: 1, MB: 3 }

/**
 * Compares what survives another day and another load: of a time its ratio to the peer of the same case; of what has no
 * peer the value, corrected by how fast the machine was for the peers of all cases. A difference counts when it is larger
 * than the tolerance and than what the samples scattered in both runs.
 */
export function compare(before: BenchReport, after: BenchReport): Comparison {
  const pairs = Object.entries(after.areas).flatMap(([area, { results }]) =>
    results.flatMap((now) => {
      const then = before.areas[area]?.results.find(
        (one) => one.case === now.case && one.baseline === now.baseline,
      )
      return then === undefined ? [] : [{ area, then, now }]
    }),
  )
  const pace = paceOf(pairs)
  return {
    pace,
    differences: [...pairs.flatMap((pair) => timesOf(pair, pace)), ...factsOf(before, after, pace)],
    lost: lostOf(before, after),
    machine: machineOf(before, after),
  }
}

interface Pair {
  readonly area: string
  readonly then: BenchResult
  readonly now: BenchResult
}

function paceOf(pairs: readonly Pair[]): number {
  const paces = pairs.flatMap(({ then, now }) => {
    const pace = baseOf(now) / baseOf(then)
    return now.own === true || !Number.isFinite(pace) || pace <= 0 ? [] : [pace]
  })
  return paces.length === 0 ? 1 : quantile(paces, 0.5)
}

const baseOf = ({ candidates, baseline }: BenchResult): number => candidates[baseline]?.median ?? Number.NaN

function timesOf({ area, then, now }: Pair, pace: number): Difference[] {
  return Object.entries(now.candidates).flatMap(([name, candidate]) => {
    const earlier = then.candidates[name]
    if (earlier === undefined || !isOurs(now, name)) return []
    const bound = 1 + Math.max(TOLERANCE, candidate.spread + earlier.spread)
    const about = { area, what: `${now.case}: ${name}`, spread: [earlier.spread, candidate.spread] as const }
    return name === now.baseline
      ? differenceOf({ ...about, unit: 'ms', before: earlier.median, after: candidate.median / pace }, bound)
      : differenceOf({ ...about, unit: '×', before: earlier.ratio, after: candidate.ratio }, bound)
  })
}

/** That a peer became slower beside another peer is no news of ours. */
const isOurs = ({ own }: BenchResult, name: string): boolean => own === true || name.includes('puzzl')

/** What is noted of peers, for the same reason. */
const OF_PEERS = /direct, no proxy|mitmproxy|squid|sandbox-runtime/

function factsOf(before: BenchReport, after: BenchReport, pace: number): Difference[] {
  return Object.entries(after.areas).flatMap(([area, { facts }]) =>
    facts.flatMap(({ name, value, unit }) => {
      const then = before.areas[area]?.facts.find((fact) => fact.name === name)?.value
      const rate = unit.endsWith('/s')
      const corrected = unit === 'ms' ? value / pace : rate ? value * pace : value
      if (then === undefined || OF_PEERS.test(name) || Math.abs(corrected - then) < (LEAST[unit] ?? 0))
        return []
      return differenceOf({ area, what: name, unit, before: then, after: corrected }, 1 + 2 * TOLERANCE, rate)
    }),
  )
}

/** Nothing where one of them is no number: its baseline was not measured, or it is none that can be divided. */
function differenceOf(
  pair: Omit<Difference, 'factor' | 'bound' | 'verdict'>,
  bound: number,
  moreIsBetter = false,
): Difference[] {
  const factor = pair.after / pair.before
  if (!Number.isFinite(factor) || factor <= 0) return []
  const cost = moreIsBetter ? 1 / factor : factor
  const verdict = cost > bound ? 'worse' : cost < 1 / bound ? 'better' : 'same'
  return [{ ...pair, factor, bound, verdict }]
}

/** An area that was not asked for this time is not lost. */
function lostOf(before: BenchReport, after: BenchReport): string[] {
  return Object.entries(after.areas).flatMap(([area, now]) => {
    const names = ({ results, facts }: Pick<typeof now, 'results' | 'facts'>): string[] => [
      ...results.flatMap((one) => Object.keys(one.candidates).map((name) => `${one.case}: ${name}`)),
      ...facts.map(({ name }) => name),
    ]
    const found = new Set(names(now))
    const earlier = before.areas[area]
    return earlier === undefined
      ? []
      : names(earlier)
          .filter((name) => !found.has(name))
          .map((name) => `${area}: ${name}`)
  })
}

function machineOf(before: BenchReport, after: BenchReport): string[] {
  const parts = ['cpu', 'cpus', 'memoryGiB', 'kernel', 'node', 'filesystem'] as const
  return parts
    .filter((part) => before.machine[part] !== after.machine[part])
    .map((part) => `${part} ${before.machine[part]} → ${after.machine[part]}`)
}

const three = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3))
const percent = (part: number): string => `± ${(part * 100).toFixed(0)} %`

/** For a person: what moved, by how much, and how much it had to. */
export function comparisonText({ differences, pace, lost, machine }: Comparison, since: string): string {
  const told = differences
    .filter(({ verdict }) => verdict !== 'same')
    .sort((a, b) => (a.verdict === b.verdict ? 0 : a.verdict === 'worse' ? -1 : 1))
  const worse = told.filter(({ verdict }) => verdict === 'worse').length
  return [
    `Compared with the run of ${since}: ${differences.length} figures, ${worse} worse, ${told.length - worse} better`,
    `The programs of others took ${pace.toFixed(2)} × as long as then; figures without a peer are corrected by that`,
    ...(machine.length === 0
      ? []
      : [`Not the same machine, so little of this means anything: ${machine.join(', ')}`]),
    ...told.map(rowOf),
    ...lost.map((what) => `  not measured this time  ${what}`),
    '',
  ].join('\n')
}

function rowOf({ area, what, unit, before, after, spread, factor, bound, verdict }: Difference): string {
  const [then, now] = (spread ?? []).map((part) => ` ${percent(part)}`)
  const change = `${three(before)} ${unit}${then ?? ''} → ${three(after)} ${unit}${now ?? ''}`
  const least = bound.toFixed(2)
  return `  ${verdict.padEnd(6)} ${factor.toFixed(2)} × (counts from ${least})  ${area}: ${what}\n         ${change}`
}
