import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { QueuedRequestSummary } from '../contract/changeset.ts'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { newRequestId } from '../lib/ids.ts'
import { inlineBody, readStart, type SpoolLimits, spoolBody, syncDirectory } from './body-spool.ts'
import { ownText } from './own-text.ts'
import { QueueLog } from './queue-log.ts'
import {
  apply,
  encodeRecord,
  type HeaderPair,
  QUEUE_VERSION,
  type QueuedRequest,
  type QueueRecord,
  type RequestState,
  readLog,
  requestDigest,
  type StoredBody,
  type StoredRequest,
  type StoredResponse,
} from './queue-record.ts'
import type { QueueShare } from './queue-room.ts'

export interface QueueLimits {
  readonly maxRequests: number
  /** Of all bodies together. */
  readonly maxBytes: number
  readonly maxBodyBytes: number
  /** Of all records: heads and small bodies, which are in the daemon's memory while the queue is open. */
  readonly maxHeadBytes?: number
}

export const DEFAULT_QUEUE_LIMITS: QueueLimits = {
  maxRequests: 10_000,
  maxBytes: 1024 * 1024 * 1024,
  maxBodyBytes: 256 * 1024 * 1024,
}

const MAX_HEAD_BYTES = 64 * 1024 * 1024

/** Queues that this process has open; other processes are kept out by the lock of the store. */
const inUse = new Set<string>()

export interface RequestEdit extends Partial<Omit<StoredRequest, 'body'>> {
  readonly body?: Uint8Array
}

/**
 * HTTP writes of one branch, held until its commit.
 * - A request is durable, its body included, before `add` resolves; nobody is answered 202 before.
 * - Every move is durable before its effect: a request that was found `sending` after a crash is `unknown`.
 * - A full queue refuses; nothing is dropped silently.
 */
export class RequestQueue {
  readonly #directory: string
  readonly #limits: QueueLimits
  readonly #room: SpoolLimits
  readonly #requests: Map<string, QueuedRequest>
  readonly #log: QueueLog
  readonly #share: QueueShare | undefined
  /** Not empty: the log is damaged, the queue only shows what it has. */
  readonly damage: readonly string[]
  #bytes = 0
  #heads = 0
  #arriving = 0

  private constructor(
    directory: string,
    limits: QueueLimits,
    requests: Map<string, QueuedRequest>,
    log: QueueLog,
    damage: readonly string[],
    share: QueueShare | undefined,
  ) {
    this.#share = share
    this.#directory = directory
    this.#limits = limits
    this.#room = {
      maxBodyBytes: limits.maxBodyBytes,
      reserve: (bytes) => {
        if (this.#bytes + bytes > limits.maxBytes)
          throw new PuzzledError('queue-full', `The queue holds at most ${limits.maxBytes} bytes`)
        share?.take(bytes)
        this.#bytes += bytes
      },
      release: (bytes) => this.#release(bytes),
    }
    this.#requests = requests
    this.#log = log
    this.damage = damage
    for (const one of requests.values()) {
      if (one.state !== 'dropped') this.#bytes += one.request.body.size
      this.#heads += JSON.stringify(one.request).length
    }
    share?.hold(this.#bytes + this.#heads)
  }

  /** Opens or creates the queue in a directory that only the daemon can reach. */
  static async open(
    directory: string,
    limits: QueueLimits = DEFAULT_QUEUE_LIMITS,
    share?: QueueShare,
  ): Promise<RequestQueue> {
    // A second writer would take what the first one is sending for the remains of a crash.
    if (inUse.has(directory))
      throw new PuzzledError('state-locked', `The request queue in ${directory} is in use`)
    inUse.add(directory)
    try {
      return await RequestQueue.#open(directory, limits, share)
    } catch (error) {
      share?.close()
      inUse.delete(directory)
      throw error
    }
  }

  static async #open(
    directory: string,
    limits: QueueLimits,
    share: QueueShare | undefined,
  ): Promise<RequestQueue> {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const path = join(directory, 'queue.log')
    await createLog(path, directory)
    const read = readLog(await readFile(path))
    const requests = new Map(read.requests)
    const damaged = read.damage.length > 0
    // A damaged log is left exactly as it was found.
    const length = damaged ? (await readFile(path)).length : read.goodBytes
    const log = await QueueLog.open(path, length)
    const queue = new RequestQueue(directory, limits, requests, log, read.damage, share)
    if (!damaged) await queue.#recover(length)
    return queue
  }

  async #recover(length: number): Promise<void> {
    if (length === 0) await this.#log.append(encodeRecord({ op: 'open', version: QUEUE_VERSION }))
    for (const one of this.list())
      if (one.state === 'sending')
        await this.move(one.id, 'unknown', 'The daemon ended while it was being sent')
    // Bodies without a record were never acknowledged; bodies of dropped requests are not needed again.
    const needed = new Set(this.list().map((one) => (one.state === 'dropped' ? '' : one.request.body.file)))
    for (const name of await readdir(this.#directory))
      if (name.startsWith('body-') && !needed.has(name)) await rm(join(this.#directory, name))
  }

  /** Streams a body in, against the limits. `add` makes a request of it; `abandon` gives its space back. */
  async spool(chunks: AsyncIterable<Uint8Array>): Promise<StoredBody> {
    this.#refuseIfDamaged()
    return await spoolBody(this.#directory, () => `body-${newRequestId()}`, chunks, this.#room)
  }

  /** The same for a body that is in memory and at most `INLINE_BYTES` long. */
  take(bytes: Buffer): StoredBody {
    this.#refuseIfDamaged()
    return inlineBody(bytes, this.#room)
  }

  /** Resolves when it is known what the other queues hold; undefined where it is. To be waited for before a body is taken. */
  ready(): Promise<void> | undefined {
    return this.#share?.ready()
  }

  #release(bytes: number): void {
    this.#bytes -= bytes
    this.#share?.give(bytes)
  }

  async abandon(body: StoredBody): Promise<void> {
    this.#release(body.size)
    if (body.file !== undefined) await rm(join(this.#directory, body.file), { force: true })
  }

  /** Durable when it resolves. An `Idempotency-Key` is added unless the agent sent one. */
  async add(request: Omit<StoredRequest, 'body'>, body: StoredBody): Promise<QueuedRequest> {
    this.#refuseIfDamaged()
    if (this.#requests.size + this.#arriving >= this.#limits.maxRequests) {
      await this.abandon(body)
      throw new PuzzledError('queue-full', `The queue holds at most ${this.#limits.maxRequests} requests`)
    }
    const id = newRequestId()
    const hasKey = request.headers.some(([name]) => name.toLowerCase() === 'idempotency-key')
    const key: readonly HeaderPair[] = hasKey ? [] : [['idempotency-key', `puzzled-${id}`]]
    const stored = owned({ ...request, headers: [...request.headers, ...key], body })
    const record = { op: 'queued', id, time: now(), request: stored } as const
    const text = encodeRecord(record)
    const head = text.length
    if (this.#heads + head > (this.#limits.maxHeadBytes ?? MAX_HEAD_BYTES)) {
      await this.abandon(body)
      throw new PuzzledError('queue-full', 'The headers and small bodies in the queue are too much')
    }
    try {
      this.#share?.take(head)
    } catch (error) {
      await this.abandon(body)
      throw error
    }
    this.#arriving++
    this.#heads += head
    try {
      await this.#record(record, text)
    } catch (error) {
      this.#heads -= head
      this.#share?.give(head)
      await this.abandon(body)
      throw error
    } finally {
      this.#arriving--
    }
    return this.get(id)
  }

  /** In the order in which they will be sent. */
  list(): readonly QueuedRequest[] {
    return [...this.#requests.values()]
  }

  get(id: string): QueuedRequest {
    const found = this.#requests.get(id)
    if (found === undefined) throw new PuzzledError('request-unknown', `No queued request has the id "${id}"`)
    return found
  }

  get usage(): { readonly requests: number; readonly bytes: number } {
    return { requests: this.#requests.size, bytes: this.#bytes }
  }

  /**
   * What the changeset carries: everything that would be sent after its commit. What an earlier commit approved, but
   * did not land, is sent with the next one: it must be in its digest.
   */
  summaries(): readonly QueuedRequestSummary[] {
    return this.list()
      .filter(({ state }) => state === 'queued' || state === 'approved')
      .map((one) => summaryOf(one))
  }

  async drop(id: string): Promise<void> {
    const { body } = this.get(id).request
    await this.move(id, 'dropped', 'Dropped by a person')
    await this.abandon(body)
  }

  /** An edit is a new request with the same place in the queue: its digest changes, so the gate must run again. */
  async edit(id: string, change: RequestEdit): Promise<QueuedRequest> {
    this.#refuseIfDamaged()
    const known = this.get(id)
    if (known.state !== 'queued' && known.state !== 'approved')
      throw new PuzzledError('wrong-state', `Request "${id}" is ${known.state}`)
    const { body: bytes, ...rest } = change
    const body = bytes === undefined ? known.request.body : await this.spool(once(bytes))
    await this.#record({ op: 'edited', id, time: now(), request: { ...known.request, ...rest, body } })
    if (bytes !== undefined) await this.abandon(known.request.body)
    const lengthOf = (request: StoredRequest): number => JSON.stringify(request).length
    this.#heads += lengthOf(this.get(id).request) - lengthOf(known.request)
    return this.get(id)
  }

  /**
   * Binds to exactly what was reviewed. Requests that are not named stay queued, or are again: what an undone commit had
   * approved must not leave with one that was judged without it.
   */
  async approve(reviewed: readonly Pick<QueuedRequestSummary, 'id' | 'sha256'>[]): Promise<void> {
    this.#refuseIfDamaged()
    for (const { id, sha256 } of reviewed) {
      const one = this.#requests.get(id)
      // A crash between two approvals leaves some approved: doing it again finishes it.
      const ready = one?.state === 'queued' || one?.state === 'approved'
      if (one === undefined || !ready || requestDigest(one.request) !== sha256)
        throw new PuzzledError('changed-since-review', `Request "${id}" is not the one that was reviewed`)
    }
    const named = new Set(reviewed.map(({ id }) => id))
    const others = this.list().filter(({ id, state }) => state === 'approved' && !named.has(id))
    await Promise.all(others.map(({ id }) => this.move(id, 'queued', 'Not part of what was approved last')))
    const fresh = reviewed.filter(({ id }) => this.get(id).state === 'queued')
    await Promise.all(fresh.map(({ id }) => this.move(id, 'approved')))
  }

  /** Refuses a move that the table does not have; durable when it resolves. */
  async move(id: string, to: RequestState, detail?: string, response?: StoredResponse): Promise<void> {
    this.#refuseIfDamaged()
    const base = { op: 'state', id, time: now(), to } as const
    const withDetail = detail === undefined ? base : { ...base, detail }
    const record: QueueRecord = response === undefined ? withDetail : { ...withDetail, response }
    const problem = apply(new Map([[id, this.get(id)]]), record)
    if (problem !== undefined) throw new PuzzledError('wrong-state', `The queue's record ${problem}`)
    await this.#record(record)
  }

  /** Base64 characters of answers that are kept for people. */
  get answerBytes(): number {
    return this.list().reduce((sum, { response }) => sum + (response?.body.length ?? 0), 0)
  }

  /** The beginning of the body, for people: not verified where it is long, because it is verified when it is sent. */
  async bodyStart(id: string, limit: number): Promise<Buffer> {
    const { state, request } = this.get(id)
    const { body } = request
    if (body.file === undefined) return (await this.body(id)).subarray(0, limit)
    // Its file went with it; the record stays and is listed.
    if (state === 'dropped') return Buffer.alloc(0)
    return readStart(join(this.#directory, body.file), Math.min(limit, body.size))
  }

  /** The body's bytes, verified against the digest that was approved. */
  async body(id: string): Promise<Buffer> {
    const { body } = this.get(id).request
    const bytes =
      body.file === undefined
        ? Buffer.from(body.inline ?? '', 'base64')
        : await readFile(join(this.#directory, body.file))
    if (bytes.length !== body.size || createHash('sha256').update(bytes).digest('hex') !== body.sha256)
      throw new PuzzledError('record-damaged', `The body of request "${id}" is not what was queued`)
    return bytes
  }

  /** For large bodies: verified in a first pass, then streamed. */
  async verifiedFile(id: string): Promise<string | undefined> {
    const { body } = this.get(id).request
    if (body.file === undefined) return undefined
    const path = join(this.#directory, body.file)
    const hash = createHash('sha256')
    let size = 0
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      size += chunk.length
    }
    if (size !== body.size || hash.digest('hex') !== body.sha256)
      throw new PuzzledError('record-damaged', `The body of request "${id}" is not what was queued`)
    return path
  }

  async close(): Promise<void> {
    await this.#log.close()
    inUse.delete(this.#directory)
    this.#share?.close()
  }

  async #record(record: QueueRecord, text = encodeRecord(record)): Promise<void> {
    failpoint('queue.before-append')
    await this.#log.append(text)
    const problem = apply(this.#requests, record)
    if (problem !== undefined) throw new PuzzledError('internal', `The queue's record ${problem}`)
    failpoint('queue.appended')
  }

  #refuseIfDamaged(): void {
    if (this.damage.length > 0)
      throw new PuzzledError('record-damaged', `The request queue is damaged: ${this.damage.join('; ')}`, {
        hint: `The log was kept as it is in ${this.#directory}`,
      })
  }
}

export function summaryOf(one: QueuedRequest): QueuedRequestSummary {
  const { method, host, target, body } = one.request
  const sha256 = requestDigest(one.request)
  return { id: one.id, method, host, path: target, bytes: body.size, class: 'queue', sha256 }
}

async function createLog(path: string, directory: string): Promise<void> {
  const file = await open(path, 'a', 0o600)
  await file.close()
  await syncDirectory(directory)
}

/** It is kept until its branch ends: without the head that its parts were cut from. */
const owned = (request: StoredRequest): StoredRequest => ({
  ...request,
  target: ownText(request.target),
  headers: request.headers.map(([name, value]) => [ownText(name), ownText(value)] as const),
})

const now = (): string => new Date().toISOString()

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
