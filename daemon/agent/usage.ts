import { type BranchUsage, PRESSURE_RESOURCES } from '../contract/engine.ts'
import type { RunningAgents } from './running.ts'

/** What the agent of a branch uses and waits for at this moment. */
export async function usageOf(running: RunningAgents, id: string): Promise<BranchUsage> {
  const [agent, watch] = [running.find(id), running.watchOf(id)]
  if (agent === undefined || watch === undefined) return { budgets: {}, pressure: {} }
  const pressure = PRESSURE_RESOURCES.flatMap((resource) => {
    const shares = agent.pressure(resource)
    return shares === null ? [] : [[resource, shares] as const]
  })
  // The meter meets what cannot be read as well, says so and acts; whoever only looks must not fail for it.
  const budgets = await watch.usage().catch(() => ({}))
  return { budgets, pressure: Object.fromEntries(pressure) }
}
