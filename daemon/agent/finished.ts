import type { BranchRecord } from '../contract/branch.ts'
import type { Outcome } from '../contract/engine.ts'

/** Who comes to ask later than this many others have finished hears what the record says. */
const MOST_KEPT = 1000

export interface Finished {
  readonly id: string
  readonly name: string | null
  readonly uid: number
  readonly outcome: Promise<Outcome>
}

/**
 * How branches ended. Several may wait for one end, and some come late: a branch that changed nothing is gone by then,
 * and its agent's exit status with it.
 */
export class FinishedBranches {
  readonly #pending = new Set<string>()
  readonly #known = new Map<string, Finished>()

  /** Does the work once, however many ask while it is done. `work` is told what was found the last time. */
  once(
    record: BranchRecord,
    work: (before: Promise<Outcome> | undefined) => Promise<Outcome>,
  ): Promise<Outcome> {
    const { id, name, requester } = record
    const before = this.#known.get(id)
    if (before !== undefined && this.#pending.has(id)) return before.outcome
    this.#pending.add(id)
    const outcome = work(before?.outcome)
    this.#known.delete(id)
    this.#known.set(id, { id, name, uid: requester.uid, outcome })
    for (const [oldest] of this.#known) if (this.#known.size > MOST_KEPT) this.#known.delete(oldest)
    outcome.then(
      () => this.#pending.delete(id),
      () => {
        this.#pending.delete(id)
        this.#known.delete(id)
      },
    )
    return outcome
  }

  find(id: string): Finished | undefined {
    return this.#known.get(id)
  }

  all(): readonly Finished[] {
    return [...this.#known.values()]
  }
}
