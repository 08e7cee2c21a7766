// pure
import type { BudgetKind } from '../contract/profile.ts'
import type { Amounts } from './limits.ts'

/**
 * What a branch uses up for good: whoever starts a command in it again, after its agent has ended or the daemon was
 * started again, goes on where it stood. Of the others there is as much as there is now: memory, processes, and what
 * lies in the layers and in the queue.
 */
export const SPENT_KINDS = [
  'wall',
  'cpu',
  'exec',
  'egress',
  'requests',
] as const satisfies readonly BudgetKind[]

/** A daemon that is killed forgets less than this of a limit. */
const KEPT_SHARE = 1 / 20

const pick = (amountOf: (kind: BudgetKind) => number | undefined): Amounts =>
  Object.fromEntries(
    SPENT_KINDS.flatMap((kind) => {
      const amount = amountOf(kind)
      return amount === undefined ? [] : [[kind, amount]]
    }),
  )

/** What one start used, on top of what was used before it. */
export const onTop = (used: Amounts, before: Amounts): Amounts => ({
  ...used,
  ...pick((kind) => (used[kind] === undefined ? before[kind] : used[kind] + (before[kind] ?? 0))),
})

/** Of kinds without a limit nobody asks. */
export const spentOf = (used: Amounts, limits: Amounts): Amounts =>
  pick((kind) => (limits[kind] === undefined ? undefined : used[kind]))

/** What is left of the limits for one more start. */
export const leftOf = (limits: Amounts, before: Amounts): Amounts => ({
  ...limits,
  ...pick((kind) => {
    const limit = limits[kind]
    return limit === undefined ? undefined : Math.max(0, limit - (before[kind] ?? 0))
  }),
})

/** A limit that is used up: nothing may start. One of zero that nothing was used of is the agent's to meet. */
export const spentOut = (limits: Amounts, before: Amounts): BudgetKind | undefined =>
  SPENT_KINDS.find((kind) => {
    const [limit, used] = [limits[kind], before[kind] ?? 0]
    return limit !== undefined && used > 0 && used >= limit
  })

/** Whether so much was used since it was last put on record that it must be again. */
export const isWorthKeeping = (spent: Amounts, kept: Amounts, limits: Amounts): boolean =>
  SPENT_KINDS.some((kind) => {
    const [limit, now] = [limits[kind], spent[kind] ?? 0]
    const more = now - (kept[kind] ?? 0)
    return limit !== undefined && more > 0 && (more >= limit * KEPT_SHARE || now >= limit)
  })
