import { orderOf, type Summary, summarise } from './statistics.ts'

/**
 * Benchmarks print ratios, never a verdict in milliseconds: the candidates of a case run in the same process, interleaved
 * round by round, so that whatever else the machine does hits all of them alike.
 */
export interface BenchCase {
  readonly name: string
  /** What runs, by name; one call is one sample. */
  readonly candidates: Readonly<Record<string, () => void | Promise<void>>>
  /** What comes before a sample of that candidate and is not measured. */
  readonly before?: Readonly<Record<string, () => void | Promise<void>>>
  /** The candidate that the others are divided by. */
  readonly baseline: string
  /** The baseline is ours as well: between two runs it is compared, too, where a peer is what the machine is measured by. */
  readonly own?: true
  /** What the design asks for, as text: `≤ 1.0`. */
  readonly goal?: string
  readonly rounds?: number
  readonly warmUp?: number
}

/** What an area finds out besides times. */
export interface Notes {
  /** A number that is not a time to be compared: memory, delays, rates. */
  fact(name: string, value: number, unit: string): void
  /** A peer that is not on this machine, and how it gets there. */
  missing(peer: string, how: string): void
}

/** How much of it whoever started the run has time for. */
export interface Extent {
  /** What takes minutes as well. */
  readonly full: boolean
}

export interface BenchArea {
  readonly name: string
  /** Why it cannot run here, or nothing. */
  readonly missing?: () => string | undefined
  readonly cases: (notes: Notes, extent: Extent) => readonly BenchCase[] | Promise<readonly BenchCase[]>
  /** Ends what `cases` started. */
  readonly close?: (notes: Notes) => void | Promise<void>
}

export interface BenchResult {
  readonly case: string
  readonly baseline: string
  /** As in the case. */
  readonly own?: true
  readonly goal: string | null
  readonly candidates: Readonly<Record<string, Summary & { readonly ratio: number }>>
}

export interface Fact {
  readonly name: string
  readonly value: number
  readonly unit: string
}

export interface AreaReport {
  /** Why nothing was measured, or nothing. */
  readonly missing: string | null
  /** What broke it in the middle; what was measured before counts. */
  readonly failed: string | null
  readonly results: readonly BenchResult[]
  readonly facts: readonly Fact[]
  readonly peers: readonly { readonly peer: string; readonly how: string }[]
  readonly seconds: number
}

/** So many rounds are what a median needs; a case that has them ends when it has taken its share of the time. */
const MIN_ROUNDS = 5
const SHARE_MILLIS = 20_000

export async function measure(bench: BenchCase): Promise<BenchResult> {
  const names = Object.keys(bench.candidates)
  const samples: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]))
  const warmUp = bench.warmUp ?? 5
  const total = warmUp + (bench.rounds ?? 50)
  const began = performance.now()
  for (let round = 0; round < total; round++) {
    if (round >= warmUp + MIN_ROUNDS && performance.now() - began > SHARE_MILLIS) break
    for (const name of orderOf(names, round)) {
      await bench.before?.[name]?.()
      const started = performance.now()
      await bench.candidates[name]?.()
      if (round >= warmUp) samples[name]?.push(performance.now() - started)
    }
  }
  const summaries = Object.entries(samples).map(([name, values]) => [name, summarise(values)] as const)
  const base = summaries.find(([name]) => name === bench.baseline)?.[1].median ?? Number.NaN
  return {
    case: bench.name,
    baseline: bench.baseline,
    ...(bench.own === true ? { own: true as const } : {}),
    goal: bench.goal ?? null,
    candidates: Object.fromEntries(
      summaries.map(([name, summary]) => [name, { ...summary, ratio: summary.median / base }]),
    ),
  }
}

export function resultText(result: BenchResult): string {
  const rows = Object.entries(result.candidates).map(([name, { median, p99, ratio, spread, rounds }]) => {
    const numbers = [
      `p50 ${median.toFixed(2)} ms`,
      `p99 ${p99.toFixed(2)} ms`,
      `ratio ${ratio.toFixed(2)}`,
      `± ${(spread * 100).toFixed(0)} %`,
    ]
    return `  ${name.padEnd(46)} ${numbers.map((text) => text.padStart(15)).join('')}   n=${rounds}`
  })
  const goal = result.goal === null ? '' : `; goal ${result.goal}`
  return `${result.case} (ratio to ${result.baseline}${goal})\n${rows.join('\n')}\n`
}

/** Measures one area and prints it as it goes. What breaks in it is its own: the other areas are measured all the same. */
export async function runArea(area: BenchArea, extent: Extent): Promise<AreaReport> {
  const results: BenchResult[] = []
  const facts: Fact[] = []
  const peers: { peer: string; how: string }[] = []
  const started = performance.now()
  const report = (missing: string | null, failed: string | null): AreaReport => {
    const seconds = Math.round((performance.now() - started) / 1000)
    return { missing, failed, results, facts, peers, seconds }
  }
  const missing = area.missing?.()
  if (missing !== undefined) {
    console.log(`${area.name}: not measured here: ${missing}\n`)
    return report(missing, null)
  }
  const notes = notesOf(area, facts, peers)
  const failures: unknown[] = []
  const trying = async (work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) => failures.push(error))
  }
  await trying(async () => {
    for (const bench of await area.cases(notes, extent)) {
      const result = await measure(bench)
      results.push(result)
      console.log(resultText(result))
    }
  })
  await trying(async () => area.close?.(notes))
  if (failures.length === 0) return report(null, null)
  const failed = failures.map((error) => (error instanceof Error ? error.message : String(error))).join('; ')
  console.error(`${area.name}: it failed:`, ...failures)
  return report(null, failed)
}

const notesOf = (area: BenchArea, facts: Fact[], peers: { peer: string; how: string }[]): Notes => ({
  fact: (name, value, unit) => {
    facts.push({ name, value, unit })
    console.log(`${name}: ${value.toFixed(2)} ${unit}`)
  },
  missing: (peer, how) => {
    peers.push({ peer, how })
    console.log(`${area.name}: without ${peer}: ${how}`)
  },
})
