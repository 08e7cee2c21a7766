import { closeSync, existsSync, readFileSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Outbox } from './agent/ports.ts'
import type { BranchRecord } from './contract/branch.ts'
import type { QueuedRequestSummary } from './contract/changeset.ts'
import type {
  ContentSide,
  NetTestAnswer,
  QueueAction,
  QueuedView,
  QueueEdit,
  QueueResult,
} from './contract/engine.ts'
import type { PuzzledEvent } from './contract/events.ts'
import type { BudgetKind } from './contract/profile.ts'
import { createNetns } from './kernel/netns.ts'
import { PuzzledError } from './lib/errors.ts'
import { KeyLock } from './lib/key-lock.ts'
import { BranchQueue, type NetworkCounters } from './network/branch-queue.ts'
import { DropWatch } from './network/drop-watch.ts'
import { type BranchNetwork, openNetwork } from './network/gate-network.ts'
import { netTest } from './network/net-test.ts'
import { editedRequest, refuseSecrets } from './network/queue-edit.ts'
import { type RequestState, readLog } from './network/queue-record.ts'
import type { QueueOwner, QueueRoom } from './network/queue-room.ts'
import { READ_BYTES, viewOf } from './network/queue-view.ts'
import { type ReplayReport, skip } from './network/replay.ts'
import { compileRules } from './network/request-rule.ts'
import { checkRules } from './network/rule-check.ts'

interface Live {
  /** Without the files that the agent was started with: nobody needs them twice, and they are large. */
  network: Omit<BranchNetwork, 'files'>
  namespace: number
  /** What its agent used of the processor when somebody last asked; null as long as nobody knows. */
  cpu: number | null
}

const FINAL: ReadonlySet<RequestState> = new Set(['sent', 'dropped', 'skipped'])

/** The networks of running branches, and the queues that branches leave behind. */
export class NetworkParts implements Outbox {
  readonly #directoryOf: (id: string) => string
  readonly #publish: (event: PuzzledEvent) => void
  readonly #counters: NetworkCounters | undefined
  readonly #room: QueueRoom | undefined
  readonly #drops: DropWatch
  readonly #owner = new KeyLock<string>()
  readonly #live = new Map<string, Live>()

  /** Of branches whose networks are closed. */
  readonly #past = { out: 0, in: 0 }

  constructor(
    directoryOf: (id: string) => string,
    publish: (event: PuzzledEvent) => void,
    counters?: NetworkCounters,
    room?: QueueRoom,
  ) {
    this.#room = room
    this.#directoryOf = directoryOf
    this.#publish = publish
    this.#counters = counters
    this.#drops = new DropWatch(publish, counters)
  }

  /** Bytes of all branches since the start, for the metrics. */
  traffic(): { out: number; in: number } {
    const sum = { ...this.#past }
    for (const { network } of this.#live.values()) {
      const { bytesOut, bytesIn } = network.usage()
      sum.out += bytesOut
      sum.in += bytesIn
    }
    return sum
  }

  /** The namespace exists and everything in it listens before the agent does. */
  async open(record: BranchRecord): Promise<BranchNetwork> {
    refuseBadRules(record)
    // Not while somebody looks at the queue that an earlier agent left.
    return this.#owner.run(record.id, async () => {
      const namespace = createNetns()
      try {
        const network = await openNetwork({ ...this.#options(record), netns: namespace })
        const { files: _given, ...kept } = network
        const live: Live = { network: kept, namespace, cpu: null }
        this.#live.set(record.id, live)
        this.#drops.begin(record.id, kept, () => live.cpu)
        return network
      } catch (error) {
        closeSync(namespace)
        throw error
      }
    })
  }

  /** Ends the network of a branch; what it queued stays on disk. Idempotent. */
  async close(id: string): Promise<void> {
    await this.#owner.run(id, async () => {
      const live = this.#live.get(id)
      if (live === undefined) return
      this.#live.delete(id)
      const { bytesOut, bytesIn } = live.network.usage()
      this.#past.out += bytesOut
      this.#past.in += bytesIn
      this.#drops.end(id)
      try {
        await live.network.close()
      } finally {
        closeSync(live.namespace)
      }
    })
  }

  async closeAll(): Promise<void> {
    for (const id of [...this.#live.keys()]) await this.close(id)
  }

  /** `cpu` is what the agent used of the processor until now: who rests sends nothing, and is left in peace. */
  readings(id: string, cpu: number | null = null): Partial<Record<BudgetKind, number>> {
    const live = this.#live.get(id)
    if (live === undefined) return {}
    live.cpu = cpu
    const { network } = live
    const { bytesOut, requests } = network.usage()
    return { egress: bytesOut, requests, queued: network.queue.queue.usage.bytes }
  }

  async pending(record: BranchRecord): Promise<readonly QueuedRequestSummary[]> {
    return (await this.#withRequests(record, async ({ queue }) => queue.summaries())) ?? []
  }

  async approve(record: BranchRecord, requests: readonly QueuedRequestSummary[]): Promise<void> {
    await this.#withQueue(record, ({ queue }) => queue.approve(requests))
  }

  async replay(record: BranchRecord): Promise<QueueResult> {
    return resultOf(await this.#withRequests(record, (queue) => queue.replay()))
  }

  async view(record: BranchRecord): Promise<readonly QueuedView[]> {
    const placeholders = record.profile.resolved.network.credentials.map(({ placeholder }) => placeholder)
    const read = async ({ queue }: BranchQueue): Promise<QueuedView[]> => {
      const views: QueuedView[] = []
      // One after the other: together they may be larger than memory.
      for (const one of queue.list())
        views.push(viewOf(one, await queue.bodyStart(one.id, READ_BYTES), placeholders))
      return views
    }
    return (await this.#withRequests(record, read)) ?? []
  }

  async body(record: BranchRecord, request: string, limit: number): Promise<ContentSide> {
    const found = await this.#withQueue(record, async ({ queue }) => ({
      bytes: await queue.bodyStart(request, limit),
      size: queue.get(request).request.body.size,
    }))
    if (found === undefined) throw neverQueued(record, request)
    return found
  }

  async edit(record: BranchRecord, request: string, edit: QueueEdit): Promise<void> {
    const { network } = record.profile.resolved
    const edited = await this.#withQueue(record, async (queue) => {
      refuseSecrets(edit, await queue.credentials())
      const head = editedRequest(queue.queue.get(request).request, edit, compileRules(network))
      queue.announce(
        await queue.queue.edit(request, edit.body === undefined ? head : { ...head, body: edit.body }),
      )
      return true
    })
    if (edited === undefined) throw neverQueued(record, request)
  }

  test(record: BranchRecord, method: string, url: string): NetTestAnswer {
    return netTest(record.profile.resolved.network, method, url)
  }

  async act(record: BranchRecord, request: string, action: QueueAction, why: string): Promise<QueueResult> {
    if (action !== 'drop' && this.#live.has(record.id))
      throw new PuzzledError('wrong-state', `Branch ${record.id} is ${record.state}: nothing was sent yet`)
    const report = await this.#withQueue(record, async (queue) => {
      const mayLeave = requestsMayLeave(record)
      if (action === 'resume' && mayLeave) return queue.resume(request)
      // Behind a skipped request the others are sent; where no commit landed, nothing may be.
      if (action === 'skip' && mayLeave) return queue.skip(request, why)
      if (action === 'skip') await skip(queue.queue, request, why)
      else if (action === 'resume') await requeue(queue, request, why)
      else await queue.queue.drop(request)
      return undefined
    })
    return { ...resultOf(report), ...(action === 'resume' && report === undefined ? { waits: true } : {}) }
  }

  async standing(record: BranchRecord): Promise<{ sent: number; stopped: string | null }> {
    const list = (await this.#withRequests(record, async ({ queue }) => queue.list())) ?? []
    const stop = list.find(({ state }) => state === 'failed' || state === 'unknown')
    return {
      sent: list.filter(({ state }) => state === 'sent').length,
      stopped: stop === undefined ? null : `request ${stop.id} is ${stop.state}: ${stop.detail}`,
    }
  }

  async resume(record: BranchRecord): Promise<QueueResult | null> {
    // Only looked at: opening a queue writes, and most are finished.
    const path = join(this.#directoryOf(record.id), 'queue', 'queue.log')
    if (!existsSync(path)) return null
    const { requests, damage } = readLog(await readFile(path))
    const next = [...requests.values()].find(({ state }) => !FINAL.has(state))
    return damage.length === 0 && next?.state === 'approved' ? this.replay(record) : null
  }

  /** The same; undefined, too, where a queue was opened and nothing came: opening it again writes, and most are so. */
  #withRequests<Result>(
    record: BranchRecord,
    work: (queue: BranchQueue) => Promise<Result>,
  ): Promise<Result | undefined> {
    return this.#withQueue(record, work, (directory) => hasNoRecord(join(directory, 'queue.log')))
  }

  /** Undefined where the branch never queued anything. One at a time: a queue has one owner. */
  async #withQueue<Result>(
    record: BranchRecord,
    work: (queue: BranchQueue) => Promise<Result>,
    isNothing: (directory: string) => boolean = () => false,
  ): Promise<Result | undefined> {
    const directory = join(this.#directoryOf(record.id), 'queue')
    if (!existsSync(directory)) return undefined
    return this.#owner.run(record.id, async () => {
      const live = this.#live.get(record.id)
      if (live !== undefined) return work(live.network.queue)
      if (isNothing(directory)) return undefined
      const queue = await BranchQueue.open(this.#options(record))
      try {
        return await work(queue)
      } finally {
        await queue.close()
      }
    })
  }

  #options(record: BranchRecord) {
    return {
      branch: record.id,
      network: record.profile.resolved.network,
      directory: this.#directoryOf(record.id),
      onEvent: this.#publish,
      ...(this.#counters === undefined ? {} : { counters: this.#counters }),
      ...(this.#room === undefined ? {} : { queueShare: this.#room.share(ownerOf(record)) }),
    }
  }
}

/** Of the first record alone: whatever is longer, cut or damaged is the queue's own to read. */
const FIRST_RECORD_BYTES = 256

function hasNoRecord(path: string): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined || size > FIRST_RECORD_BYTES) return false
  const { requests, damage, goodBytes } = readLog(readFileSync(path))
  return requests.size === 0 && damage.length === 0 && goodBytes === size && size > 0
}

const ownerOf = ({ id, requester }: BranchRecord): QueueOwner => ({
  id,
  uid: requester.uid,
  user: requester.name,
})

const neverQueued = ({ id }: BranchRecord, request: string): PuzzledError =>
  new PuzzledError('request-unknown', `Branch ${id} has no request "${request}"`)

/**
 * Only behind a commit that landed. Where requests go before the files, every one of them has left by then, so what is
 * still here belongs to a commit that is to be judged.
 */
const requestsMayLeave = ({ state, commit, profile }: BranchRecord): boolean =>
  profile.resolved.network.replay === 'before-files' ? state === 'committed' : commit !== null

async function requeue({ queue }: BranchQueue, id: string, why: string): Promise<void> {
  const { state } = queue.get(id)
  if (state !== 'failed' && state !== 'unknown')
    throw new PuzzledError(
      'wrong-state',
      `Request "${id}" is ${state}: only a failed or unknown one can be resumed`,
    )
  await queue.move(id, 'queued', why)
}

function resultOf(report: ReplayReport | undefined): QueueResult {
  if (report === undefined) return { sent: 0, problem: null }
  const { sent, stopped, waiting } = report
  const problem =
    stopped === undefined
      ? null
      : `request ${stopped.id} is ${stopped.state}: ${stopped.reason}; ${waiting} more wait`
  return { sent: sent.length, problem }
}

/** Rules that contradict or can never match are a mistake in the profile, found before the agent meets it. */
function refuseBadRules({ profile: { name, resolved } }: BranchRecord): void {
  const [problem] = checkRules(resolved.network).filter(({ severity }) => severity === 'error')
  if (problem !== undefined)
    throw new PuzzledError(
      'profile-invalid',
      `Network rule "${problem.rule}" of profile "${name}": ${problem.message}`,
    )
}
