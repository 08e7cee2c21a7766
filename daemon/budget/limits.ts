// pure
import { BUDGET_KINDS, type BudgetKind, type Budgets } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'

export type Amounts = Readonly<Partial<Record<BudgetKind, number>>>

/**
 * The limits that hold for a branch: the profile's, made narrower by whoever started it, made wider by a person who
 * extended them. A request that asks for more than the profile is an error, not a wish.
 */
export function limitsOf(profile: Budgets, asked: Amounts, extensions: Amounts): Amounts {
  const limits: Partial<Record<BudgetKind, number>> = {}
  for (const kind of BUDGET_KINDS) {
    const limit = narrower(kind, profile.limits[kind], asked[kind])
    if (limit !== undefined) limits[kind] = limit + (extensions[kind] ?? 0)
  }
  return limits
}

function narrower(
  kind: BudgetKind,
  limit: number | undefined,
  asked: number | undefined,
): number | undefined {
  if (asked === undefined) return limit
  checkAmount(kind, asked)
  if (limit !== undefined && asked > limit)
    throw new PuzzledError('usage', `The budget ${kind}=${asked} is more than the profile’s ${limit}`, {
      hint: 'Ask for less, or use a profile that allows it',
      data: { budget: kind, asked, limit },
    })
  return asked
}

export function checkAmount(kind: BudgetKind, amount: number): void {
  if (!Number.isFinite(amount) || amount < 0)
    throw new PuzzledError('usage', `The budget ${kind}=${amount} is not an amount`)
}

const UNITS: Readonly<Record<BudgetKind, 'seconds' | 'bytes' | 'count'>> = {
  wall: 'seconds',
  cpu: 'seconds',
  memory: 'bytes',
  pids: 'count',
  disk: 'bytes',
  inodes: 'count',
  exec: 'count',
  egress: 'bytes',
  requests: 'count',
  queued: 'bytes',
  deletions: 'count',
}

/** `1.5 GiB`, `90 s`, `12`: for sentences. */
export function amountText(kind: BudgetKind, amount: number): string {
  if (UNITS[kind] === 'seconds') return `${Math.round(amount * 10) / 10} s`
  if (UNITS[kind] === 'count') return String(Math.round(amount))
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = amount < 1 ? 0 : Math.min(Math.floor(Math.log2(amount) / 10), names.length - 1)
  return `${Math.round((amount / 1024 ** power) * 10) / 10} ${names[power]}`
}

/** The same as `puzzlectl` reads it, never less: `90s`, `1536M`, `12`. */
export function optionText(kind: BudgetKind, amount: number): string {
  if (UNITS[kind] === 'seconds') return `${Math.ceil(amount)}s`
  return UNITS[kind] === 'bytes' ? `${Math.ceil(amount / 2 ** 20)}M` : String(Math.ceil(amount))
}
