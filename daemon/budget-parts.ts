import type { Budgeting } from './agent/ports.ts'
import type { BranchSpace } from './branch/space.ts'
import { exceededError, Meter } from './budget/meter.ts'
import { Rest } from './budget/rest.ts'
import type { BudgetKind } from './contract/profile.ts'
import { PuzzledError } from './lib/errors.ts'
import type { NetworkParts } from './network-parts.ts'

/** A meter per agent. Where nobody could be asked for more, a frozen agent would stand still for ever: it is ended. */
export const budgeting = (canAsk: boolean, network: NetworkParts, space: BranchSpace): Budgeting => ({
  atLimit: (wished) => (canAsk ? wished : 'kill'),
  watch: (record, { limits, atLimit }, agent, hooks) => {
    const { id } = record
    const { disk, inodes, deletions } = limits
    const layers = disk === undefined && inodes === undefined ? null : space.readerOf(id, limits)
    const gone = deletions === undefined ? null : space.deletionsOf(record, deletions)
    const rest = new Rest<Partial<Record<BudgetKind, number>>>()
    const written = () => ({ ...layers?.read(), ...defined('deletions', gone?.read()) })
    const meter = new Meter(limits, atLimit, {
      readings: async () => {
        const used = agent.readings()
        const cpu = used.cpu ?? null
        return { ...used, ...rest.read(cpu, written), ...network.readings(id, cpu) }
      },
      freeze: () => agent.freeze(),
      thaw: () => agent.thaw(),
      kill: async () => void (await agent.kill('budget')),
      announce: ({ budget, used, limit, percent }) => hooks.crossed(budget, used, limit, percent),
      exceeded: ({ message, action, ...facts }) => {
        const byKernel = (facts.budget === 'disk' || facts.budget === 'inodes') && layers?.held === true
        hooks.exceeded(message, action, { ...facts, ...(byKernel ? { layer: 'quota' } : {}) })
      },
      failed: (error, action) => hooks.exceeded(unreadable(error), action, {}),
      extended: (kind, limit) => {
        if (kind === 'disk' || kind === 'inodes') layers?.extend(kind, limit)
        else if (kind === 'deletions') gone?.extend(limit)
        else agent.extend(kind, limit)
      },
      now: () => performance.now(),
    })
    if (Object.keys(limits).length > 0) meter.start()
    return {
      extend: (kind, by) => meter.extend(kind, by),
      refusal: () => refusalOf(meter, id),
      stop: () => meter.stop(),
    }
  },
})

const defined = (kind: BudgetKind, amount: number | undefined): Partial<Record<BudgetKind, number>> =>
  amount === undefined ? {} : { [kind]: amount }

/** A disk that is nearly full is a reason of its own. */
const unreadable = (error: unknown): string =>
  error instanceof PuzzledError && error.code === 'no-space'
    ? `${error.message}. ${error.hint ?? ''}`
    : `Its use cannot be read: ${error}`

function refusalOf(meter: Meter, id: string): Error | null {
  if (meter.exceeded !== null) return exceededError(meter.exceeded, id)
  if (!meter.acted) return null
  return new PuzzledError('budget-exceeded', `Nobody could read what branch ${id} uses, so it stands still`, {
    hint: `It goes on when its use can be read and one of its budgets is extended: puzzlectl budget ${id} …`,
  })
}
