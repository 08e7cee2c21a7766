import type { BranchRecord } from '../contract/branch.ts'

/**
 * Discards under way. They end agents, and whoever waits for such an agent must hear of the discard: nobody judges, or
 * commits, what is being thrown away.
 */
export class Discards {
  readonly #open = new Map<string, Promise<BranchRecord>>()

  async run(id: string, work: () => Promise<BranchRecord>): Promise<BranchRecord> {
    const discard = work()
    this.#open.set(id, discard)
    try {
      return await discard
    } finally {
      if (this.#open.get(id) === discard) this.#open.delete(id)
    }
  }

  /** What became of the one under way; null where there is none, or where it failed and the branch is still there. */
  async of(id: string): Promise<BranchRecord | null> {
    return (await this.#open.get(id)?.catch(() => null)) ?? null
  }
}
