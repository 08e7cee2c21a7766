// pure

export interface Summary {
  readonly median: number
  readonly p99: number
  /** Half the distance between the quartiles, as a part of the median. */
  readonly spread: number
  readonly rounds: number
}

/** The value below which this share of the samples lies (nearest rank). */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN
}

export function summarise(samples: readonly number[]): Summary {
  const median = quantile(samples, 0.5)
  return {
    median,
    p99: quantile(samples, 0.99),
    spread: (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2 / median,
    rounds: samples.length,
  }
}

/** In this round the candidates run in this order: rotated, so that nobody always follows the same one. */
export const orderOf = <Item>(items: readonly Item[], round: number): Item[] =>
  items.map((_, at) => items[(at + round) % items.length] as Item)
