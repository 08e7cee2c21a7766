import { PassThrough, type Readable } from 'node:stream'
import { type AgentRequest, type AgentResponse, hasBody } from './arriving.ts'
import { fillIn, Redactor, redactText, type Secret } from './credentials.ts'
import { NetworkDenied } from './denial.ts'
import type { AnswerHandler, Exchange } from './exchange.ts'
import type { Gate } from './gate.ts'
import { requestHeaders, responseHeaders } from './headers.ts'
import type { Headers } from './request-nature.ts'
import { header } from './request-nature.ts'
import type { Decision, JudgedRequest } from './request-rule.ts'
import { upstreamError } from './upstream-error.ts'

export interface Outgoing {
  readonly target: string
  readonly headers: Headers
  readonly secrets: readonly Secret[]
}

/** The request as it leaves: hop-by-hop headers gone, only allowed headers, secrets in place of placeholders. */
export function outgoing(gate: Gate, request: JudgedRequest, decision: Decision): Outgoing {
  const allowed = decision.matched?.rule.headers?.map((name) => name.toLowerCase())
  const headers = requestHeaders(request.headers, { allowed, live: decision.class === 'live' })
  const filled = fillIn(gate.credentials, request.host, request.scheme, request.target.raw, headers)
  if (filled.secrets.length === 0) return filled
  // An echo of the secret must be found in the answer, so the answer must not be compressed.
  const plain = filled.headers.filter(([name]) => name !== 'accept-encoding')
  return { ...filled, headers: [...plain, ['accept-encoding', 'identity']] }
}

/** Sends the request now and streams the answer back. Rejects with `NetworkDenied` when nothing was answered yet. */
export function forward(
  gate: Gate,
  request: JudgedRequest,
  decision: Decision,
  from: AgentRequest,
  to: AgentResponse,
  judged: Buffer | undefined = undefined,
): Promise<void> {
  const { matched } = decision
  const { host, scheme, port, method } = request
  const out = outgoing(gate, request, decision)
  gate.budget.addBytes(matched, host.text, 'out', sizeOf(out, method))
  const body = judged ?? (hasBody(from) ? buffered(from) : null)
  return new Promise<void>((done, failed) => {
    const handler = new AnswerRelay(gate, decision, host.text, to, out.secrets, done, failed)
    const allowed = matched?.addresses ?? []
    // A used-up budget ends a body, and with it the request.
    const sending = (bytes: number): void => gate.budget.addBytes(matched, host.text, 'out', bytes)
    const { target, headers } = out
    gate.upstream
      .dispatch({ scheme, host, port, allowed, method, target, headers, body, sending }, handler)
      .catch(failed)
  }).finally(() => {
    // Answered before it was read: what is left of it must not keep the agent's connection from its next request.
    if (judged === undefined && !from.readableEnded) from.unpipe().resume()
  })
}

/** However often it is said: one of them is enough for a reader. */
const isCompressed = (headers: Headers): boolean =>
  headers.some(([name, value]) => name === 'content-encoding' && value.trim().toLowerCase() !== 'identity')

/** HTTP/2 is told about room in its window with every start and stop: a buffer between makes them few. */
function buffered(from: AgentRequest): Readable {
  const through = new PassThrough()
  // Whoever reads it hears of the error; before anybody reads, it must not end the process.
  through.on('error', () => undefined)
  from.once('error', (error) => through.destroy(error))
  from.once('close', () => {
    if (!from.readableEnded) through.destroy(new Error('The agent went away'))
  })
  return from.pipe(through)
}

const sizeOf = (out: Outgoing, method: string): number =>
  out.headers.reduce(
    (sum, [name, value]) => sum + name.length + value.length + 4,
    method.length + out.target.length + 12,
  )

class AnswerRelay implements AnswerHandler {
  readonly #gate: Gate
  readonly #decision: Decision
  readonly #host: string
  readonly #to: AgentResponse
  readonly #secrets: readonly Secret[]
  readonly #redactor: Redactor | undefined
  readonly #done: () => void
  readonly #failed: (error: unknown) => void
  #exchange: Exchange | undefined
  /** A head that waits for what arrived with it. */
  #pending:
    | { readonly status: number; readonly headers: Headers; readonly length: number | undefined }
    | undefined

  constructor(
    gate: Gate,
    decision: Decision,
    host: string,
    to: AgentResponse,
    secrets: readonly Secret[],
    done: () => void,
    failed: (error: unknown) => void,
  ) {
    this.#gate = gate
    this.#decision = decision
    this.#host = host
    this.#to = to
    this.#secrets = secrets
    this.#redactor = secrets.length === 0 ? undefined : new Redactor(secrets)
    this.#done = done
    this.#failed = failed
  }

  begun(exchange: Exchange): void {
    this.#exchange = exchange
    // The agent hung up: the other end must not go on working for nobody.
    const stop = (): void => {
      if (!this.#to.writableFinished) exchange.abort(new Error('The agent went away'))
    }
    if (this.#to.destroyed) stop()
    else this.#to.once('close', stop)
  }

  head(status: number, headers: Headers): void {
    if (this.#redactor !== undefined && isCompressed(headers)) {
      const why = 'The answer to a request with a credential is compressed and cannot be searched for it'
      this.#exchange?.abort(new NetworkDenied(502, 'answer-unsearchable', why))
      return
    }
    const length = header(headers, 'content-length')
    this.#pending = { status, headers, length: length === undefined ? undefined : Number(length) }
  }

  /** Most answers arrive in one piece, and leave in one. */
  data(bytes: Buffer): void {
    try {
      this.#gate.budget.addBytes(this.#decision.matched, this.#host, 'in', bytes.length)
    } catch (error) {
      this.#exchange?.abort(error as Error)
      return
    }
    if (this.#redactor === undefined && this.#pending?.length === bytes.length) {
      this.#writeHead()
      this.#to.end(bytes)
      return
    }
    this.#writeHead()
    const clean = this.#redactor === undefined ? bytes : this.#redactor.push(bytes)
    if (clean.length === 0 || this.#to.write(clean)) return
    this.#exchange?.pause()
    this.#to.once('drain', () => this.#exchange?.resume())
  }

  /** Server-sent events and the like: the headers must not wait for the first data. */
  arrived(): void {
    if (this.#pending === undefined) return
    this.#writeHead()
    this.#to.flushHeaders()
  }

  #writeHead(): void {
    const pending = this.#pending
    if (pending === undefined) return
    this.#pending = undefined
    this.#to.writeHead(pending.status, this.#answerHeaders(pending.headers))
  }

  #answerHeaders(list: Headers): Record<string, string[] | string> {
    const out: Record<string, string[] | string> = Object.create(null) as Record<string, string[] | string>
    for (const [name, value] of responseHeaders(list)) {
      if (this.#redactor !== undefined && name === 'content-length') continue
      const shown = redactText(value, this.#secrets)
      const before = out[name]
      out[name] = before === undefined ? shown : [...[before].flat(), shown]
    }
    return out
  }

  end(trailers: Headers): void {
    this.#writeHead()
    const rest = this.#redactor?.end()
    if (rest !== undefined && rest.length > 0) this.#to.write(rest)
    const kept = responseHeaders(trailers).map(([name, value]) => [name, redactText(value, this.#secrets)])
    if (kept.length > 0) this.#to.addTrailers(Object.fromEntries(kept) as Record<string, string>)
    if (!this.#to.writableEnded) this.#to.end()
    this.#done()
  }

  failed(error: Error): void {
    if (!this.#to.headersSent) {
      this.#failed(upstreamError(error))
      return
    }
    // Half an answer must not look like a whole one.
    this.#to.destroy()
    this.#done()
  }
}
