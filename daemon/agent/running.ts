import type { AgentExit } from '../contract/branch.ts'
import type { BudgetWatch, RunningAgent } from './ports.ts'

interface Entry {
  agent: RunningAgent
  watch: BudgetWatch
  /** Settles when the exit is recorded in the store, not merely when the process is gone. */
  stopped: Promise<AgentExit>
}

/** The agents that this process has started. A branch that is `running` in the store and not here belongs to nobody. */
export class RunningAgents {
  readonly #entries = new Map<string, Entry>()

  add(id: string, agent: RunningAgent, watch: BudgetWatch, stopped: Promise<AgentExit>): void {
    this.#entries.set(id, { agent, watch, stopped })
    const remove = (): void => {
      this.#entries.delete(id)
    }
    stopped.then(remove, remove)
  }

  find(id: string): RunningAgent | undefined {
    return this.#entries.get(id)?.agent
  }

  watchOf(id: string): BudgetWatch | undefined {
    return this.#entries.get(id)?.watch
  }

  /** Resolves at once for a branch that does not run here. */
  async ended(id: string): Promise<void> {
    await this.#entries.get(id)?.stopped
  }

  ids(): readonly string[] {
    return [...this.#entries.keys()]
  }
}
