// pure
import { BUDGET_KINDS, type BudgetKind, type Budgets } from '../contract/profile.ts'
import { type Amounts, amountText } from './limits.ts'

export const WARNING_PERCENT = 90

/** A threshold that was crossed upwards since the last reading. */
export interface Crossing {
  readonly budget: BudgetKind
  readonly used: number
  readonly limit: number
  readonly percent: typeof WARNING_PERCENT | 100
}

/** Why a branch stands still or was ended; what a person needs to decide about more. */
export interface BudgetExceeded {
  readonly budget: BudgetKind
  readonly used: number
  readonly limit: number
  readonly action: Budgets['atLimit']
  readonly message: string
}

/** What has been said already, so that nothing is said twice. */
export type Said = Readonly<Partial<Record<BudgetKind, Crossing['percent']>>>

export interface Judgement {
  readonly crossings: readonly Crossing[]
  readonly exceeded: BudgetExceeded | null
  readonly said: Said
}

/**
 * Compares a reading with the limits. 100 % means used up, not passed: with a limit of 10 processes the tenth is the last.
 * When a limit has been extended, what was said about it counts no more.
 */
export function judge(used: Amounts, limits: Amounts, atLimit: Budgets['atLimit'], said: Said): Judgement {
  const crossings: Crossing[] = []
  const now: Partial<Record<BudgetKind, Crossing['percent']>> = {}
  for (const budget of BUDGET_KINDS) {
    const [amount, limit] = [used[budget], limits[budget]]
    if (amount === undefined || limit === undefined) continue
    const reached = levelOf(budget, amount, limit)
    if (reached === 0) continue
    now[budget] = reached
    // Also of one that was passed between two looks: whoever waits for the first event must not miss it.
    for (const percent of [WARNING_PERCENT, 100] as const)
      if (percent <= reached && percent > (said[budget] ?? 0))
        crossings.push({ budget, used: amount, limit, percent })
  }
  const full = crossings.find((crossing) => crossing.percent === 100)
  return { crossings, exceeded: full === undefined ? null : exceeded(full, atLimit), said: now }
}

const levelOf = (budget: BudgetKind, used: number, limit: number): 0 | Crossing['percent'] =>
  isFull(budget, used, limit) ? 100 : used * 100 >= limit * WARNING_PERCENT ? WARNING_PERCENT : 0

/**
 * A filesystem refuses the write that would pass the limit, so what is used stays a little below it. Room that small is
 * no room: the agent would get `ENOSPC` and nobody would be asked.
 */
const DISK_RESERVE_BYTES = 2 ** 20
const DISK_RESERVE_SHARE = 1 / 16

const isFull = (budget: BudgetKind, used: number, limit: number): boolean =>
  used >= (budget === 'disk' ? limit - Math.min(DISK_RESERVE_BYTES, limit * DISK_RESERVE_SHARE) : limit)

const exceeded = (crossing: Crossing, action: Budgets['atLimit']): BudgetExceeded => ({
  budget: crossing.budget,
  used: crossing.used,
  limit: crossing.limit,
  action,
  message:
    `The ${crossing.budget} budget is used up (${amountText(crossing.budget, crossing.used)} of ` +
    `${amountText(crossing.budget, crossing.limit)}): the agent is ${action === 'freeze' ? 'frozen' : 'ended'}`,
})

/**
 * What an agent used more of than it may, when it has ended before anybody saw it. Its last reading is not held against it:
 * to have used up exactly what it had is allowed. Nor is time, which goes on until its end is noticed.
 */
export function passed(used: Amounts, limits: Amounts): Omit<Crossing, 'percent'> | null {
  for (const budget of BUDGET_KINDS) {
    const [amount, limit] = [used[budget], limits[budget]]
    if (budget === 'wall' || amount === undefined || limit === undefined) continue
    if (amount > limit) return { budget, used: amount, limit }
  }
  return null
}

export const passedText = ({ budget, used, limit }: Omit<Crossing, 'percent'>): string =>
  `The ${budget} budget was passed (${amountText(budget, used)} of ${amountText(budget, limit)}) ` +
  'before anybody saw it: the agent had ended'

/** Whether every budget has room again, so that a frozen branch may go on. */
export const hasRoom = (used: Amounts, limits: Amounts): boolean =>
  BUDGET_KINDS.every((budget) => {
    const [amount, limit] = [used[budget], limits[budget]]
    return amount === undefined || limit === undefined || !isFull(budget, amount, limit)
  })
