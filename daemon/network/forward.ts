import type { AgentRequest, AgentResponse } from './agent-request.ts'
import { fillIn, isCompressed, Redactor, redactText, type Secret, searchable } from './credentials.ts'
import { NetworkDenied } from './denial.ts'
import type { AnswerHandler, Exchange } from './exchange.ts'
import type { Gate } from './gate.ts'
import { requestHeaders, responseHeaders } from './headers.ts'
import type { Headers } from './request-nature.ts'
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
  // An echo of the secret must be found in the answer.
  return { ...filled, headers: searchable(filled.headers) }
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
  if (from.whole !== undefined && judged === undefined)
    gate.budget.addBytes(matched, host.text, 'out', from.whole.length)
  const body = judged ?? from.whole ?? from.body ?? null
  return new Promise<void>((done, failed) => {
    const asked = { head: method === 'HEAD', decision, host: host.text, secrets: out.secrets }
    const handler = new AnswerRelay(gate, asked, to, done, failed)
    const allowed = matched?.addresses ?? []
    // A used-up budget ends a body, and with it the request.
    const sending = (bytes: number): void => gate.budget.addBytes(matched, host.text, 'out', bytes)
    const { target, headers } = out
    gate.upstream
      .dispatch({ scheme, host, port, allowed, method, target, headers, body, sending }, handler)
      .catch(failed)
  }).finally(() => {
    // Answered before it was read: what is left of it must not keep the agent's connection from its next request.
    if (judged !== undefined || from.complete) return
    from.body?.unpipe()
    from.discard()
  })
}

function sizeOf(out: Outgoing, method: string): number {
  let size = method.length + out.target.length + 12
  for (const [name, value] of out.headers) size += name.length + value.length + 4
  return size
}

/** What an answer is the answer to. */
export interface Asked {
  /** For the headers only. */
  readonly head: boolean
  readonly decision: Decision
  readonly host: string
  readonly secrets: readonly Secret[]
}

/** Passes an answer on as it comes, without the secrets that went out. */
export class AnswerRelay implements AnswerHandler {
  readonly #gate: Gate
  readonly #asked: Asked
  readonly #to: AgentResponse
  readonly #redactor: Redactor | undefined
  readonly #done: () => void
  readonly #failed: (error: unknown) => void
  #exchange: Exchange | undefined

  constructor(
    gate: Gate,
    asked: Asked,
    to: AgentResponse,
    done: () => void,
    failed: (error: unknown) => void,
  ) {
    this.#gate = gate
    this.#asked = asked
    this.#to = to
    this.#redactor = asked.secrets.length === 0 ? undefined : new Redactor(asked.secrets)
    this.#done = done
    this.#failed = failed
  }

  begun(exchange: Exchange): void {
    this.#exchange = exchange
    // The agent hung up: the other end must not go on working for nobody.
    const stop = (): void => exchange.abort(new Error('The agent went away'))
    if (this.#to.gone) stop()
    else this.#to.onGone(stop)
  }

  head(status: number, headers: Headers): void {
    if (this.#redactor !== undefined && isCompressed(headers)) {
      const why = 'The answer to a request with a credential is compressed and cannot be searched for it'
      this.#exchange?.abort(new NetworkDenied(502, 'answer-unsearchable', why))
      return
    }
    const kept = responseHeaders(headers)
    this.#to.head(status, this.#redactor === undefined ? kept : this.#redacted(kept))
  }

  #redacted(headers: Headers): Headers {
    const { head, secrets } = this.#asked
    return (
      headers
        // A placeholder has another length than what it stands for. Without a body there is none of them.
        .filter(([name]) => head || name !== 'content-length')
        .map(([name, value]) =>
          // A part of it is not asked for again.
          name === 'accept-ranges'
            ? ([name, 'none'] as const)
            : ([name, redactText(value, secrets)] as const),
        )
    )
  }

  data(bytes: Buffer): void {
    try {
      const { decision, host } = this.#asked
      this.#gate.budget.addBytes(decision.matched, host, 'in', bytes.length)
    } catch (error) {
      this.#exchange?.abort(error as Error)
      return
    }
    const clean = this.#redactor === undefined ? bytes : this.#redactor.push(bytes)
    if (clean.length === 0 || this.#to.write(clean)) return
    this.#exchange?.pause()
    this.#to.onDrain(() => this.#exchange?.resume())
  }

  /** Server-sent events and the like: the headers must not wait for the first data. */
  arrived(): void {
    this.#to.flush()
  }

  end(trailers: Headers): void {
    const rest = this.#redactor?.end()
    if (rest !== undefined && rest.length > 0) this.#to.write(rest)
    this.#to.end(trailers.length === 0 ? [] : this.#redacted(responseHeaders(trailers)))
    this.#done()
  }

  failed(error: Error): void {
    if (!this.#to.begun) {
      this.#failed(upstreamError(error))
      return
    }
    // Half an answer must not look like a whole one.
    this.#to.destroy()
    this.#done()
  }
}
