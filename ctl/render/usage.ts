// pure
import { type BranchUsage, PRESSURE_RESOURCES } from '../../daemon/contract/engine.ts'
import { BUDGET_KINDS, type BudgetKind } from '../../daemon/contract/profile.ts'
import type { Paint } from './paint.ts'
import { bytesText } from './sizes.ts'

const SECONDS: ReadonlySet<BudgetKind> = new Set(['wall', 'cpu'])
const BYTES: ReadonlySet<BudgetKind> = new Set(['memory', 'disk', 'egress', 'queued'])
/** A share from which on somebody may care. */
const WORTH_SAYING = 1

/** What a running branch uses of what it may, and what it waits for. */
export function usageText({ budgets, pressure }: BranchUsage, paint: Paint): string {
  const uses = BUDGET_KINDS.flatMap((kind) => {
    const amount = budgets[kind]
    if (amount === undefined) return []
    const of = amount.limit === null ? '' : ` of ${amountText(kind, amount.limit)}`
    return [`${kind} ${amountText(kind, amount.used)}${of}`]
  })
  const waits = PRESSURE_RESOURCES.flatMap((resource) => {
    const share = pressure[resource]?.some10 ?? 0
    return share < WORTH_SAYING ? [] : [`${resource} ${Math.round(share)} %`]
  })
  return [
    uses.length === 0 ? '' : label('uses', uses.join(', '), paint),
    waits.length === 0 ? '' : label('waits', `for ${waits.join(', ')} of the last 10 s`, paint),
  ].join('')
}

function amountText(kind: BudgetKind, amount: number): string {
  if (BYTES.has(kind)) return bytesText(Math.round(amount))
  return SECONDS.has(kind) ? timeText(amount) : String(amount)
}

/** `0.4s`, `12s`, `3m20s`, `2h5m`: two units are enough to compare. */
function timeText(seconds: number): string {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10}s`
  const whole = Math.floor(seconds)
  if (whole < 60) return `${whole}s`
  const [small, large, one] = whole < 3600 ? ([1, 60, 'm'] as const) : ([60, 3600, 'h'] as const)
  const rest = Math.floor((whole % large) / small)
  return `${Math.floor(whole / large)}${one}${rest === 0 ? '' : `${rest}${large === 60 ? 's' : 'm'}`}`
}

const label = (name: string, text: string, paint: Paint): string =>
  `${paint.dim(name.padStart(10))}  ${text}\n`
