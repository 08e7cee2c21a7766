import { createReadStream } from 'node:fs'
import {
  type Credential,
  fillIn,
  isCompressed,
  Redactor,
  redactText,
  type Secret,
  searchable,
} from './credentials.ts'
import { NetworkDenied } from './denial.ts'
import type { AnswerHandler, Exchange } from './exchange.ts'
import { parseHostname } from './hostname.ts'
import type { NetworkLimits } from './limits.ts'
import type { RequestQueue } from './queue.ts'
import type { HeaderPair, QueuedRequest, StoredResponse } from './queue-record.ts'
import type { ReplayPorts, SendOutcome } from './replay.ts'
import type { Headers } from './request-nature.ts'
import { type CompiledRules, decide } from './request-rule.ts'
import { parseTarget } from './request-target.ts'
import type { PinnedResolver } from './resolver.ts'
import { Upstream } from './upstream.ts'

export interface SenderParts {
  readonly queue: RequestQueue
  readonly rules: CompiledRules
  readonly resolver: PinnedResolver
  readonly credentials: readonly Credential[]
  readonly limits: NetworkLimits
  readonly ca: readonly string[]
}

/** Sends queued requests for real: rules and addresses as they are now, a connection of its own for each. */
export class Sender implements ReplayPorts {
  readonly #parts: SenderParts

  constructor(parts: SenderParts) {
    this.#parts = parts
  }

  async judge(queued: QueuedRequest): Promise<{ ok: true } | { ok: false; reason: string }> {
    try {
      const { host, allowed } = this.#judged(queued)
      await this.#parts.resolver.resolve(host, allowed)
      return { ok: true }
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error.message : String(error) }
    }
  }

  #judged(queued: QueuedRequest) {
    const { request } = queued
    const host = parseHostname(request.host)
    const target = parseTarget(request.target)
    if (!host.ok || !target.ok)
      throw new NetworkDenied(400, 'bad-target', 'The stored request names no valid place')
    const decision = decide(this.#parts.rules, { ...request, host: host.host, target: target.target })
    if (decision.class !== 'queue' && decision.class !== 'live')
      throw new NetworkDenied(403, decision.rule, decision.reason)
    return { host: host.host, allowed: decision.matched?.addresses ?? [] }
  }

  #kept(): number {
    const { limits, queue } = this.#parts
    return queue.answerBytes < limits.keptResponsesBytes ? limits.keptResponseBytes : 1_024
  }

  /** What fails in here fails before a connection is in hand; from then on the reader of the answer hears of it. */
  async send(queued: QueuedRequest): Promise<SendOutcome> {
    try {
      return await this.#send(queued)
    } catch (error) {
      return { kind: 'not-sent', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  async #send(queued: QueuedRequest): Promise<SendOutcome> {
    const { credentials, limits, resolver, ca, queue } = this.#parts
    const { request } = queued
    const { host, allowed } = this.#judged(queued)
    const filled = fillIn(credentials, host, request.scheme, request.target, request.headers)
    const file = await queue.verifiedFile(queued.id)
    const bytes = file === undefined ? await queue.body(queued.id) : undefined
    const body = file === undefined ? (bytes?.length === 0 ? null : (bytes ?? null)) : createReadStream(file)
    const framing: HeaderPair[] = body === null ? [] : [['content-length', String(request.body.size)]]
    const plain = filled.secrets.length === 0 ? filled.headers : searchable(filled.headers)
    const headers = plain.filter(([name]) => name.toLowerCase() !== 'content-length')
    const { method, scheme, port } = request
    // Never a kept-alive socket: the server may close it just as the request leaves, and then nobody knows.
    const upstream = new Upstream(resolver, limits, ca)
    try {
      return await new Promise<SendOutcome>((done, failed) => {
        const reader = new AnswerReader(this.#kept(), limits, filled.secrets, done)
        upstream
          .dispatch(
            {
              method,
              scheme,
              host,
              port,
              allowed,
              target: filled.target,
              headers: [...headers, ...framing],
              body,
            },
            reader,
          )
          .catch((error: Error) => (reader.left ? reader.failed(error) : failed(error)))
      })
    } finally {
      upstream.close()
      if (body !== null && !Buffer.isBuffer(body)) body.destroy()
    }
  }
}

/** What a reader of an answer may keep and take. */
type AnswerLimits = Pick<NetworkLimits, 'drainedResponseBytes' | 'responseMs'>

/** Collects the beginning of an answer, and knows whether anything had left when it fails. */
class AnswerReader implements AnswerHandler {
  readonly #keep: number
  readonly #secrets: readonly Secret[]
  readonly #done: (outcome: SendOutcome) => void
  #leaving = false
  #status = 0
  #headers: HeaderPair[] = []
  readonly #chunks: Buffer[] = []
  readonly #redactor: Redactor | undefined
  /** Of what came, and of that what is kept. */
  #size = 0
  #kept = 0
  #cut = false
  #unsearchable = false

  readonly #limits: AnswerLimits
  #patience: NodeJS.Timeout | undefined
  #exchange: Exchange | undefined

  constructor(
    keep: number,
    limits: AnswerLimits,
    secrets: readonly Secret[],
    done: (outcome: SendOutcome) => void,
  ) {
    this.#keep = keep
    this.#limits = limits
    this.#secrets = secrets
    this.#redactor = secrets.length === 0 ? undefined : new Redactor(secrets)
    this.#done = done
  }

  /** A byte of the request may be on its way. */
  get left(): boolean {
    return this.#leaving
  }

  begun(exchange: Exchange): void {
    this.#exchange = exchange
  }

  leaving(): void {
    this.#leaving = true
  }

  head(status: number, headers: Headers): void {
    this.#patience = setTimeout(() => this.#enough(), this.#limits.responseMs)
    this.#status = status
    // No secret reaches the disk: what cannot be searched for one is not kept.
    this.#unsearchable = this.#redactor !== undefined && isCompressed(headers)
    this.#headers = headers.map(([name, value]) => [name, redactText(value, this.#secrets)] as const)
  }

  data(chunk: Buffer): void {
    this.#size += chunk.length
    this.#take(this.#redactor === undefined ? chunk : this.#redactor.push(chunk))
    if (this.#size > this.#limits.drainedResponseBytes) this.#enough()
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return
    if (this.#unsearchable || this.#kept >= this.#keep) {
      this.#cut = true
      return
    }
    const kept = bytes.subarray(0, this.#keep - this.#kept)
    this.#chunks.push(kept)
    this.#kept += kept.length
    if (kept.length < bytes.length) this.#cut = true
  }

  /** An answer without end says no more than its status did: it is taken as it is, and the next request can go. */
  #enough(): void {
    this.#finish(true)
    this.#exchange?.abort(new Error('The answer is longer than anybody needs'))
  }

  end(): void {
    this.#finish(false)
  }

  #finish(truncated: boolean): void {
    clearTimeout(this.#patience)
    // Of what is not the end, only what no secret can begin in.
    if (this.#redactor !== undefined && !truncated) this.#take(this.#redactor.end())
    const response: StoredResponse = {
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks).toString('base64'),
      truncated: truncated || this.#cut,
    }
    this.#done({ kind: 'answered', response })
  }

  failed(error: Error): void {
    clearTimeout(this.#patience)
    const reason = redactText(error.message, this.#secrets)
    this.#done(
      this.#leaving
        ? { kind: 'unknown', reason: `It left, and then: ${reason}` }
        : { kind: 'not-sent', reason },
    )
  }
}
