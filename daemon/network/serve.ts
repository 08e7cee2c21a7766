import type { AgentRequest, AgentResponse } from './agent-request.ts'
import { judgeable } from './arriving.ts'
import { NetworkDenied, problemBody, problemHeaders } from './denial.ts'
import { enqueue } from './enqueue.ts'
import { forward } from './forward.ts'
import type { Gate } from './gate.ts'
import { grpcRefusal, isGrpc, refuseGrpc } from './grpc.ts'
import { isReadBody } from './read-body.ts'
import { header } from './request-nature.ts'
import { type Decision, decide, decideWithBody, type JudgedRequest } from './request-rule.ts'

/** One request of the agent, from its first line to its last byte. Never rejects: every failure is an answer. */
export async function serve(gate: Gate, from: AgentRequest, to: AgentResponse): Promise<void> {
  let subject = `${from.method} ${from.target.slice(0, 300)}`
  let kind: Decision['class'] = 'deny'
  const started = performance.now()
  try {
    const request = judgeable(from)
    subject = `${request.method} ${request.scheme}://${request.host.text}:${request.port}${request.target.raw.slice(0, 300)}`
    const decision = judge(gate, request)
    refuseGrpc(request.headers, request.host.text, request.port)
    gate.budget.startRequest(decision.matched, request.host.text)
    // Only now is the body wanted.
    to.proceed()
    kind = await act(gate, request, decision, from, to)
  } catch (error) {
    const denied =
      error instanceof NetworkDenied
        ? error
        : new NetworkDenied(502, 'internal', 'The gate failed', { cause: error })
    // The agent took it back, and with it what was asked of the other end: that one has not failed.
    if (!to.gone || denied.rule !== 'upstream-failed') gate.denied(subject, denied)
    refuse(denied, from, to)
  } finally {
    gate.served(kind, (performance.now() - started) / 1000)
  }
}

/** Refuses by throwing; what comes back may go on. */
export function judge(gate: Gate, request: JudgedRequest): Decision {
  const decision = decide(gate.rules, request)
  if (decision.class === 'deny' && decision.needsBody === undefined) {
    const status = decision.rule === 'trace' ? 405 : decision.rule === 'ambiguous-path' ? 400 : 403
    throw new NetworkDenied(status, decision.rule, decision.reason, { help: decision.help })
  }
  const name = gate.checkName(request.host)
  if (!name.ok) throw new NetworkDenied(403, name.rule, name.reason, { help: name.help })
  return decision
}

async function act(
  gate: Gate,
  request: JudgedRequest,
  decision: Decision,
  from: AgentRequest,
  to: AgentResponse,
): Promise<Decision['class']> {
  if (decision.needsBody !== undefined) return await actOnBody(gate, request, decision, from, to)
  if (decision.class === 'queue') await enqueue(gate, request, decision, from, to)
  else await forward(gate, request, decision, from, to)
  return decision.class
}

/** GraphQL and JSON-RPC: the body says whether it is a read. One that is too large to judge is a write. */
async function actOnBody(
  gate: Gate,
  request: JudgedRequest,
  decision: Decision,
  from: AgentRequest,
  to: AgentResponse,
): Promise<Decision['class']> {
  const limit = gate.limits.judgedBodyBytes
  const body = from.whole ?? (await beginning(from.body, limit))
  const whole = body.length <= limit
  const kind = decision.needsBody ?? 'graphql'
  const isRead = whole && isReadBody(kind, body, decision.matched?.rule.readMethods ?? [])
  const final = decideWithBody(decision, isRead)
  if (final.class === 'deny') throw new NetworkDenied(403, final.rule, final.reason, { help: final.help })
  if (final.class === 'queue') await enqueue(gate, request, final, from, to, body)
  else {
    gate.budget.addBytes(final.matched, request.host.text, 'out', body.length)
    await forward(gate, request, final, from, to, body)
  }
  return final.class
}

/** A body until it is longer than the limit; the rest can still be read. */
async function beginning(body: AgentRequest['body'], limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  if (body !== undefined)
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) break
    }
  return Buffer.concat(chunks)
}

/** What cannot be answered any more is cut off. A body that was not read ends the connection, or it would be read. */
function refuse(denied: NetworkDenied, from: AgentRequest, to: AgentResponse): void {
  if (to.begun) {
    to.destroy()
    return
  }
  if (!from.complete) to.last()
  if (from.http2 && isGrpc(header(from.headers, 'content-type'))) {
    to.head(200, Object.entries(grpcRefusal(denied)))
    to.end()
    return
  }
  const text = Buffer.from(problemBody(denied))
  to.head(denied.status, Object.entries(problemHeaders(denied, text.length)))
  if (from.method !== 'HEAD') to.write(text)
  to.end()
}
