import type { BudgetHooks, Budgeting, BudgetWatch } from './agent/ports.ts'
import type { BranchSpace } from './branch/space.ts'
import type { BudgetExceeded } from './budget/ledger.ts'
import { type Amounts, amountText, checkAmount, limitsOf, optionText } from './budget/limits.ts'
import { exceededError, Meter, type MeterPorts, noLimit } from './budget/meter.ts'
import { Rest } from './budget/rest.ts'
import { leftOf, spentOut } from './budget/spent.ts'
import type { BranchRecord } from './contract/branch.ts'
import type { BranchUsage } from './contract/engine.ts'
import { BUDGET_KINDS, type BudgetKind } from './contract/profile.ts'
import { PuzzledError } from './lib/errors.ts'
import type { NetworkParts } from './network-parts.ts'

/** A meter per agent. Where nobody could be asked for more, a frozen agent would stand still for ever: it is ended. */
export const budgeting = (canAsk: boolean, network: NetworkParts, space: BranchSpace): Budgeting => ({
  atLimit: (wished) => (canAsk ? wished : 'kill'),
  left,
  extended,
  watch: (record, atLimit, agent, hooks) => {
    const { id } = record
    const limits = limitsNow(record)
    const before: Amounts = record.used ?? {}
    const { disk, inodes, deletions } = limits
    const layers = disk === undefined && inodes === undefined ? null : space.readerOf(id, limits)
    const gone = deletions === undefined ? null : space.deletionsOf(record, deletions)
    const rest = new Rest<Partial<Record<BudgetKind, number>>>()
    const written = () => ({ ...layers?.read(), ...defined('deletions', gone?.read()) })
    let why: string | undefined
    const exceeded: BudgetHooks['exceeded'] = (message, action, facts) => {
      why = message
      hooks.exceeded(message, action, facts)
    }
    const ports: MeterPorts = {
      left: async () => ({ ...(await layers?.last()), ...network.readings(id) }),
      readings: async () => {
        const used = agent.readings()
        const cpu = used.cpu ?? null
        return { ...used, ...rest.read(cpu, written), ...network.readings(id, cpu) }
      },
      quiet: () => rest.skips(agent.readings().cpu ?? null),
      freeze: () => agent.freeze(),
      thaw: () => agent.thaw(),
      kill: async () => void (await agent.kill('budget')),
      announce: ({ budget, used, limit, percent }) => hooks.crossed(budget, used, limit, percent),
      exceeded: ({ message, action, ...facts }) => {
        const byKernel = (facts.budget === 'disk' || facts.budget === 'inodes') && layers?.held === true
        exceeded(message, action, { ...facts, ...(byKernel ? { layer: 'quota' } : {}) })
      },
      failed: (error, action, known) =>
        exceeded(known === null ? unreadable(error) : notStopped(known, error), action, {}),
      passed: (message, what) => exceeded(message, 'none', { ...what }),
      extended: (kind, limit) => {
        if (kind === 'disk' || kind === 'inodes') layers?.extend(kind, limit)
        else if (kind === 'deletions') gone?.extend(limit)
        // The gate of programs counts from the start of this agent.
        else agent.extend(kind, kind === 'exec' ? limit - (before.exec ?? 0) : limit)
      },
      now: () => performance.now(),
      spent: (used) => hooks.spent(used),
    }
    const meter = new Meter(limits, atLimit, ports, before)
    if (Object.keys(limits).length > 0) meter.start()
    return watchOf(meter, id, () => why)
  },
})

const watchOf = (meter: Meter, id: string, why: () => string | undefined): BudgetWatch => ({
  extend: (kind, by) => meter.extend(kind, by),
  rest: () => meter.rest(),
  goOn: () => meter.goOn(),
  usage: async () => usageOf(await meter.used(), meter.limits),
  refusal: () => refusalOf(meter, id),
  stop: async (byItself) => {
    const { spent, passed } = await meter.stop(byItself)
    const reason = why()
    return { used: spent, passed: passed !== null, ...(reason === undefined ? {} : { why: reason }) }
  },
})

function left(record: BranchRecord): Amounts {
  const limits = limitsNow(record)
  const before: Amounts = record.used ?? {}
  const kind = spentOut(limits, before)
  if (kind === undefined) return leftOf(limits, before)
  const used = amountText(kind, before[kind] ?? 0)
  throw new PuzzledError(
    'budget-exceeded',
    `The ${kind} budget of branch ${record.id} is used up (${used})`,
    {
      hint: `A reviewer gives it more: puzzlectl budget ${record.id} ${kind}=${optionText(kind, limits[kind] ?? 0)}`,
      data: { branch: record.id, budget: kind, used: before[kind], limit: limits[kind] },
    },
  )
}

function extended({ profile, extensions }: BranchRecord, kind: BudgetKind, by: number): Amounts {
  checkAmount(kind, by)
  if (profile.resolved.budgets.limits[kind] === undefined) throw noLimit(kind)
  return { ...extensions, [kind]: (extensions[kind] ?? 0) + by }
}

/** Those of the profile, with what a person has added. */
const limitsNow = ({ profile, extensions }: BranchRecord): Amounts =>
  limitsOf(profile.resolved.budgets, {}, extensions)

const usageOf = (used: Amounts, limits: Amounts): BranchUsage['budgets'] =>
  Object.fromEntries(
    BUDGET_KINDS.flatMap((kind) => {
      const amount = used[kind]
      return amount === undefined ? [] : [[kind, { used: amount, limit: limits[kind] ?? null }]]
    }),
  )

const defined = (kind: BudgetKind, amount: number | undefined): Partial<Record<BudgetKind, number>> =>
  amount === undefined ? {} : { [kind]: amount }

/** A disk that is nearly full is a reason of its own. */
const unreadable = (error: unknown): string =>
  error instanceof PuzzledError && error.code === 'no-space'
    ? `${error.message}. ${error.hint ?? ''}`
    : `Its use cannot be read: ${error}`

/** What it used was read well: to say that it was not would send whoever looks for the reason to the wrong place. */
const notStopped = ({ message, action }: BudgetExceeded, error: unknown): string =>
  `${message.replace(/\.$/, '')}, and it could not be ${action === 'kill' ? 'ended' : 'frozen'} at once: ${
    error instanceof Error ? error.message : error
  }`

function refusalOf(meter: Meter, id: string): Error | null {
  if (meter.exceeded !== null) return exceededError(meter.exceeded, id)
  if (!meter.acted) return null
  return new PuzzledError('budget-exceeded', `Nobody could read what branch ${id} uses, so it stands still`, {
    hint: `It goes on when its use can be read and one of its budgets is extended: puzzlectl budget ${id} …`,
  })
}
