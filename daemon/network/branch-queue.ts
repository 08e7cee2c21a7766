import { join } from 'node:path'
import type { DenialLayer } from '../contract/denial.ts'
import type { PuzzledEvent } from '../contract/events.ts'
import type { NetworkProfile } from '../contract/profile.ts'
import type { Credential } from './credentials.ts'
import { LIMITS, type NetworkLimits } from './limits.ts'
import { type QueueLimits, RequestQueue } from './queue.ts'
import type { QueuedRequest } from './queue-record.ts'
import type { QueueShare } from './queue-room.ts'
import { type ReplayReport, replay, resume, skip } from './replay.ts'
import { compileRules } from './request-rule.ts'
import { type Lookup, ownAddresses, PinnedResolver, systemLookup } from './resolver.ts'
import { loadCredentials } from './secret-source.ts'
import { Sender } from './send.ts'

export interface NetworkCounters {
  denied(layer: DenialLayer, times?: number): void
  served(kind: string, seconds: number): void
}

export interface OutsideOptions {
  readonly branch: string
  readonly network: NetworkProfile
  /** The branch's directory in the store; the queue is `queue/` in it. */
  readonly directory: string
  onEvent(event: PuzzledEvent): void
  /** For the metrics: every denial and every request, where events tell only some of many alike. */
  readonly counters?: NetworkCounters
  readonly queueLimits?: QueueLimits
  /** Of the disk that all queues share. Closed with the queue. */
  readonly queueShare?: QueueShare
  readonly limits?: Partial<NetworkLimits>
  /** The outside name service; the system's by default. */
  readonly lookup?: Lookup
  readonly ownAddresses?: () => ReadonlySet<string>
  /** Further authorities for upstream certificates, PEM. */
  readonly authorities?: readonly string[]
}

/** The queue of a branch whose agent has ended: for review, and for replay after the commit. */
export class BranchQueue {
  readonly queue: RequestQueue
  readonly resolver: PinnedResolver
  readonly #options: OutsideOptions
  #credentials: Promise<readonly Credential[]> | undefined

  private constructor(options: OutsideOptions, queue: RequestQueue) {
    this.#options = options
    this.queue = queue
    this.resolver = new PinnedResolver(options.lookup ?? systemLookup(), options.ownAddresses ?? ownAddresses)
  }

  static async open(options: OutsideOptions): Promise<BranchQueue> {
    return new BranchQueue(
      options,
      await RequestQueue.open(join(options.directory, 'queue'), options.queueLimits, options.queueShare),
    )
  }

  get limits(): NetworkLimits {
    return { ...LIMITS, ...this.#options.limits }
  }

  /** Read once, when first needed: looking at a queue needs no secret. */
  credentials(): Promise<readonly Credential[]> {
    this.#credentials ??= loadCredentials(this.#options.network.credentials)
    return this.#credentials
  }

  /** Sends what is approved, in order, and stops at the first that does not succeed. */
  async replay(): Promise<ReplayReport> {
    return await replay(this.queue, await this.#sender())
  }

  async resume(id: string): Promise<ReplayReport> {
    return await resume(this.queue, await this.#sender(), id)
  }

  async skip(id: string, reason: string): Promise<ReplayReport> {
    await skip(this.queue, id, reason)
    return await this.replay()
  }

  announce(request: QueuedRequest): void {
    const { id, state } = request
    const { method, host } = request.request
    const time = new Date().toISOString()
    this.#options.onEvent({ kind: 'request', branch: this.#options.branch, time, id, state, method, host })
  }

  async #sender(): Promise<Sender & { onState(request: QueuedRequest): void }> {
    const sender = new Sender({
      queue: this.queue,
      rules: compileRules(this.#options.network),
      resolver: this.resolver,
      credentials: await this.credentials(),
      limits: this.limits,
      ca: this.#options.authorities ?? [],
    })
    return Object.assign(sender, { onState: (request: QueuedRequest) => this.announce(request) })
  }

  async close(): Promise<void> {
    await this.queue.close()
  }
}
