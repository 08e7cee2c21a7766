// pure
import type { AreaReport, BenchResult } from './harness.ts'

export interface Machine {
  readonly cpu: string
  readonly cpus: number
  readonly memoryGiB: number
  readonly kernel: string
  readonly distribution: string
  readonly node: string
  readonly filesystem: string
  /** One minute before and after: ratios survive a busy machine, but not any. */
  readonly load: readonly [number, number]
}

/** What one run of the benchmarks leaves in `bench-results/`. */
export interface BenchReport {
  readonly version: 1
  readonly at: string
  readonly machine: Machine
  readonly areas: Readonly<Record<string, AreaReport>>
}

/** The case whose name begins so; undefined where it did not run. */
export const caseOf = (report: BenchReport, area: string, begin: string): BenchResult | undefined =>
  report.areas[area]?.results.find((result) => result.case.startsWith(begin))

/** Median of a candidate, in milliseconds. */
export const medianOf = (
  report: BenchReport,
  area: string,
  begin: string,
  candidate: string,
): number | undefined => named(caseOf(report, area, begin), candidate)?.median

/** Median of one candidate divided by another's, of the same case. */
export function ratioOf(
  report: BenchReport,
  area: string,
  begin: string,
  [candidate, peer]: readonly [string, string],
): number | undefined {
  const found = caseOf(report, area, begin)
  const ours = named(found, candidate)?.median
  const theirs = named(found, peer)?.median
  return ours === undefined || theirs === undefined ? undefined : ours / theirs
}

export const factOf = (report: BenchReport, area: string, name: string): number | undefined =>
  report.areas[area]?.facts.find((fact) => fact.name === name)?.value

const named = (result: BenchResult | undefined, candidate: string) => {
  const key = Object.keys(result?.candidates ?? {}).find((name) => name.startsWith(candidate))
  return key === undefined ? undefined : result?.candidates[key]
}
