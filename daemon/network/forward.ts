import { type Readable, Transform } from 'node:stream'
import type { Dispatcher } from 'undici'
import { type AgentRequest, type AgentResponse, hasBody } from './arriving.ts'
import { fillIn, Redactor, redactText, type Secret } from './credentials.ts'
import { NetworkDenied } from './denial.ts'
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
  body: Readable | Buffer | null | undefined = undefined,
): Promise<void> {
  const { matched } = decision
  const { host } = request
  const out = outgoing(gate, request, decision)
  gate.budget.addBytes(matched, host.text, 'out', sizeOf(out, request.method))
  const payload =
    body === undefined ? (hasBody(from) ? metered(gate, decision, host.text, from) : null) : body
  return new Promise((done, failed) => {
    const handler = new AnswerRelay(gate, decision, host.text, to, out.secrets, done, failed)
    const { scheme, port, method } = request
    const allowed = matched?.addresses ?? []
    gate.upstream
      .dispatch(
        { scheme, host, port, allowed, method, target: out.target, headers: out.headers, body: payload },
        handler,
      )
      .catch(failed)
  })
}

const sizeOf = (out: Outgoing, method: string): number =>
  out.headers.reduce(
    (sum, [name, value]) => sum + name.length + value.length + 4,
    method.length + out.target.length + 12,
  )

/** Counts a body as it leaves; a used-up budget ends it, and with it the request. */
function metered(gate: Gate, decision: Decision, host: string, from: Readable): Readable {
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, next) {
      try {
        gate.budget.addBytes(decision.matched, host, 'out', chunk.length)
        next(null, chunk)
      } catch (error) {
        next(error as Error)
      }
    },
  })
  // Whoever reads it hears of the error; before anybody reads, it must not end the process.
  meter.on('error', () => undefined)
  // Not pipeline(): destroying the agent's request would take the answer's socket with it.
  from.once('error', (error) => meter.destroy(error))
  from.once('close', () => {
    if (!from.readableEnded) meter.destroy(new Error('The agent went away'))
  })
  return from.pipe(meter)
}

class AnswerRelay implements Dispatcher.DispatchHandler {
  readonly #gate: Gate
  readonly #decision: Decision
  readonly #host: string
  readonly #to: AgentResponse
  readonly #secrets: readonly Secret[]
  readonly #redactor: Redactor | undefined
  readonly #done: () => void
  readonly #failed: (error: unknown) => void

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

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The agent hung up: the other end must not go on working for nobody.
    const stop = (): void => {
      if (!this.#to.writableFinished) controller.abort(new Error('The agent went away'))
    }
    if (this.#to.destroyed) stop()
    else this.#to.once('close', stop)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return
    const list = Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one) => [name, one] as const),
    )
    if (this.#redactor !== undefined && (header(list, 'content-encoding') ?? 'identity') !== 'identity') {
      const why = 'The answer to a request with a credential is compressed and cannot be searched for it'
      controller.abort(new NetworkDenied(502, 'answer-unsearchable', why))
      return
    }
    this.#to.writeHead(status, this.#answerHeaders(list))
    // Server-sent events and the like: the headers must not wait for the first data. With a length, it comes soon.
    if (header(list, 'content-length') === undefined) this.#to.flushHeaders()
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

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    try {
      this.#gate.budget.addBytes(this.#decision.matched, this.#host, 'in', chunk.length)
    } catch (error) {
      controller.abort(error as Error)
      return
    }
    const clean = this.#redactor === undefined ? chunk : this.#redactor.push(chunk)
    if (clean.length === 0 || this.#to.write(clean)) return
    controller.pause()
    this.#to.once('drain', () => controller.resume())
  }

  onResponseEnd(
    _controller: Dispatcher.DispatchController,
    trailers: Record<string, string | string[] | undefined>,
  ): void {
    const rest = this.#redactor?.end()
    if (rest !== undefined && rest.length > 0) this.#to.write(rest)
    const kept = Object.entries(trailers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, redactText([value].flat().join(', '), this.#secrets)]],
    )
    if (kept.length > 0) this.#to.addTrailers(Object.fromEntries(kept) as Record<string, string>)
    this.#to.end()
    this.#done()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#to.headersSent) {
      this.#failed(upstreamError(error))
      return
    }
    // Half an answer must not look like a whole one.
    this.#to.destroy()
    this.#done()
  }
}
