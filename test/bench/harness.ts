import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../daemon/lib/assets.ts'
import { orderOf, type Summary, summarise } from './statistics.ts'

/**
 * Benchmarks print ratios, never a verdict in milliseconds: the candidates of a case run in the same process, interleaved
 * round by round, so that whatever else the machine does hits all of them alike.
 */
export interface BenchCase {
  readonly name: string
  /** What runs, by name; one call is one sample. */
  readonly candidates: Readonly<Record<string, () => void | Promise<void>>>
  /** The candidate that the others are divided by. */
  readonly baseline: string
  /** What the design asks for, as text: `≤ 1.0`. */
  readonly goal?: string
  readonly rounds?: number
  readonly warmUp?: number
}

export interface BenchArea {
  readonly name: string
  /** Why it cannot run here, or nothing. */
  readonly missing?: () => string | undefined
  readonly cases: () => readonly BenchCase[] | Promise<readonly BenchCase[]>
  /** Ends what `cases` started. */
  readonly close?: () => Promise<void>
}

export interface BenchResult {
  readonly case: string
  readonly baseline: string
  readonly goal: string | null
  readonly candidates: Readonly<Record<string, Summary & { readonly ratio: number }>>
}

export async function measure(bench: BenchCase): Promise<BenchResult> {
  const names = Object.keys(bench.candidates)
  const samples: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]))
  const warmUp = bench.warmUp ?? 5
  const total = warmUp + (bench.rounds ?? 50)
  for (let round = 0; round < total; round++)
    for (const name of orderOf(names, round)) {
      const started = performance.now()
      await bench.candidates[name]?.()
      if (round >= warmUp) samples[name]?.push(performance.now() - started)
    }
  const summaries = Object.entries(samples).map(([name, values]) => [name, summarise(values)] as const)
  const base = summaries.find(([name]) => name === bench.baseline)?.[1].median ?? Number.NaN
  return {
    case: bench.name,
    baseline: bench.baseline,
    goal: bench.goal ?? null,
    candidates: Object.fromEntries(
      summaries.map(([name, summary]) => [name, { ...summary, ratio: summary.median / base }]),
    ),
  }
}

export function resultText(result: BenchResult): string {
  const rows = Object.entries(result.candidates).map(([name, { median, p99, ratio, rounds }]) => {
    const numbers = [`p50 ${median.toFixed(2)} ms`, `p99 ${p99.toFixed(2)} ms`, `ratio ${ratio.toFixed(2)}`]
    return `  ${name.padEnd(46)} ${numbers.map((text) => text.padStart(14)).join('')}   n=${rounds}`
  })
  const goal = result.goal === null ? '' : `; goal ${result.goal}`
  return `${result.case} (ratio to ${result.baseline}${goal})\n${rows.join('\n')}\n`
}

/** Measures one area, prints it and keeps the numbers in bench-results/. */
export async function runArea(area: BenchArea): Promise<void> {
  const missing = area.missing?.()
  if (missing !== undefined) {
    console.log(`${area.name}: not measured here: ${missing}`)
    return
  }
  const results: BenchResult[] = []
  for (const bench of await area.cases()) {
    const result = await measure(bench)
    results.push(result)
    console.log(resultText(result))
  }
  await area.close?.()
  const folder = join(packageRoot(), 'bench-results')
  mkdirSync(folder, { recursive: true })
  const at = new Date().toISOString()
  const host = { kernel: release(), cpus: cpus().length, load: loadavg()[0], node: process.version }
  const file = join(folder, `${area.name}-${at.replace(/[:.]/g, '-')}.json`)
  writeFileSync(file, `${JSON.stringify({ area: area.name, at, host, results }, null, 2)}\n`)
}
