import type { BenchArea } from '../harness.ts'
import { agentsSideBySide } from '../scale/agents.ts'
import { baseCase } from '../scale/bases.ts'
import { branchesOfDaemon } from '../scale/daemon.ts'
import { historyCase } from '../scale/history.ts'

/** What grows with use: branches at once, the size of a base, and the years. */
export const area: BenchArea = {
  name: 'scale',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: async (notes) => {
    for (const count of [1, 8, 64, 256, 500]) await agentsSideBySide(count, notes)
    await branchesOfDaemon([1, 8, 64, 200, 500], notes)
    return [await baseCase([100, 10_000, 1_000_000]), await historyCase(10_000, 1_000_000, notes)]
  },
}
