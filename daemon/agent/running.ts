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
  readonly #starting = new Map<string, Promise<unknown>>()

  add(id: string, agent: RunningAgent, watch: BudgetWatch, stopped: Promise<AgentExit>): void {
    const entry = { agent, watch, stopped }
    this.#entries.set(id, entry)
    const remove = (): void => {
      // Not one that runs in its place by now.
      if (this.#entries.get(id) === entry) this.#entries.delete(id)
    }
    stopped.then(remove, remove)
  }

  /** From before it is on record as running until it is here or has failed. */
  async starting<Result>(id: string, work: () => Promise<Result>): Promise<Result> {
    const started = work()
    this.#starting.set(id, started)
    try {
      return await started
    } finally {
      this.#starting.delete(id)
    }
  }

  /** The same as `find`, of an agent that is about to be here as well. */
  async findStarted(id: string): Promise<RunningAgent | undefined> {
    await Promise.allSettled([this.#starting.get(id)])
    return this.find(id)
  }

  knows(id: string): boolean {
    return this.#entries.has(id) || this.#starting.has(id)
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

  /** Settles when the exit is on record. */
  exitOf(id: string): Promise<AgentExit> | undefined {
    return this.#entries.get(id)?.stopped
  }

  ids(): readonly string[] {
    return [...this.#entries.keys()]
  }
}
