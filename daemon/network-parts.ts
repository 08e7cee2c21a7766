import { closeSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Outbox } from './agent/ports.ts'
import type { BranchRecord } from './contract/branch.ts'
import type { QueuedRequestSummary } from './contract/changeset.ts'
import type { PuzzledEvent } from './contract/events.ts'
import type { BudgetKind } from './contract/profile.ts'
import { createNetns } from './kernel/netns.ts'
import { BranchQueue } from './network/branch-queue.ts'
import { type BranchNetwork, openNetwork } from './network/gate-network.ts'

interface Live {
  network: BranchNetwork
  namespace: number
}

/** The networks of running branches, and the queues that branches leave behind. */
export class NetworkParts implements Outbox {
  readonly #directoryOf: (id: string) => string
  readonly #publish: (event: PuzzledEvent) => void
  readonly #live = new Map<string, Live>()

  constructor(directoryOf: (id: string) => string, publish: (event: PuzzledEvent) => void) {
    this.#directoryOf = directoryOf
    this.#publish = publish
  }

  /** The namespace exists and everything in it listens before the agent does. */
  async open(record: BranchRecord): Promise<BranchNetwork> {
    const namespace = createNetns()
    try {
      const network = await openNetwork({ ...this.#options(record), netns: namespace })
      this.#live.set(record.id, { network, namespace })
      return network
    } catch (error) {
      closeSync(namespace)
      throw error
    }
  }

  /** Ends the network of a branch; what it queued stays on disk. Idempotent. */
  async close(id: string): Promise<void> {
    const live = this.#live.get(id)
    if (live === undefined) return
    this.#live.delete(id)
    await live.network.close()
    closeSync(live.namespace)
  }

  async closeAll(): Promise<void> {
    for (const id of [...this.#live.keys()]) await this.close(id)
  }

  readings(id: string): Partial<Record<BudgetKind, number>> {
    const network = this.#live.get(id)?.network
    if (network === undefined) return {}
    const { bytesOut, requests } = network.usage()
    return { egress: bytesOut, requests, queued: network.queue.queue.usage.bytes }
  }

  async pending(record: BranchRecord): Promise<readonly QueuedRequestSummary[]> {
    const live = this.#live.get(record.id)
    if (live !== undefined) return live.network.queue.queue.summaries()
    return (await this.#withQueue(record, async ({ queue }) => queue.summaries())) ?? []
  }

  async approve(record: BranchRecord, requests: readonly QueuedRequestSummary[]): Promise<void> {
    if (requests.length > 0) await this.#withQueue(record, ({ queue }) => queue.approve(requests))
  }

  async replay(record: BranchRecord): Promise<{ sent: number; problem: string | null }> {
    const report = await this.#withQueue(record, (queue) => queue.replay())
    if (report === undefined) return { sent: 0, problem: null }
    const { sent, stopped, waiting } = report
    const problem =
      stopped === undefined
        ? null
        : `request ${stopped.id} is ${stopped.state}: ${stopped.reason}; ${waiting} more wait`
    return { sent: sent.length, problem }
  }

  /** Undefined where the branch never queued anything. */
  async #withQueue<Result>(
    record: BranchRecord,
    work: (queue: BranchQueue) => Promise<Result>,
  ): Promise<Result | undefined> {
    if (!existsSync(join(this.#directoryOf(record.id), 'queue'))) return undefined
    const queue = await BranchQueue.open(this.#options(record))
    try {
      return await work(queue)
    } finally {
      await queue.close()
    }
  }

  #options(record: BranchRecord) {
    return {
      branch: record.id,
      network: record.profile.resolved.network,
      directory: this.#directoryOf(record.id),
      onEvent: this.#publish,
    }
  }
}
