import { type AgentRequest, type AgentResponse, hasBody, isHttp2, judgeable } from './arriving.ts'
import { NetworkDenied, problemBody, problemHeaders } from './denial.ts'
import { enqueue } from './enqueue.ts'
import { forward } from './forward.ts'
import type { Gate } from './gate.ts'
import { grpcRefusal, isGrpc, refuseGrpc } from './grpc.ts'
import { isReadBody } from './read-body.ts'
import { type Decision, decide, decideWithBody, type JudgedRequest } from './request-rule.ts'

/** Sends `100 Continue` to an agent that waits for it; called only when the body is wanted. */
export type Continue = () => void

/** One request of the agent, from its first line to its last byte. Never rejects: every failure is an answer. */
export async function serve(
  gate: Gate,
  from: AgentRequest,
  to: AgentResponse,
  proceed: Continue,
): Promise<void> {
  let subject = `${from.method} ${(from.url ?? '').slice(0, 300)}`
  let kind: Decision['class'] = 'deny'
  const started = performance.now()
  try {
    const request = judgeable(from)
    subject = `${request.method} ${request.scheme}://${request.host.text}:${request.port}${request.target.raw.slice(0, 300)}`
    const decision = judge(gate, request)
    refuseGrpc(request.headers, request.host.text, request.port)
    gate.budget.startRequest(decision.matched, request.host.text)
    proceed()
    kind = await act(gate, request, decision, from, to)
  } catch (error) {
    const denied =
      error instanceof NetworkDenied
        ? error
        : new NetworkDenied(502, 'internal', 'The gate failed', { cause: error })
    gate.denied(subject, denied)
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
  if (!name.ok) throw new NetworkDenied(403, name.rule, name.reason)
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
  const chunks: Buffer[] = []
  let size = 0
  if (hasBody(from))
    for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size > gate.limits.judgedBodyBytes) break
    }
  const body = Buffer.concat(chunks)
  const whole = size <= gate.limits.judgedBodyBytes
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

/** What cannot be answered any more is cut off. A body that was not read ends the connection, or it would be read. */
function refuse(denied: NetworkDenied, from: AgentRequest, to: AgentResponse): void {
  if (to.headersSent) {
    to.destroy()
    return
  }
  if (isHttp2(from) && isGrpc(from.headers['content-type'])) {
    from.stream.respond({ ':status': 200, ...grpcRefusal(denied) }, { endStream: true })
    return
  }
  const text = problemBody(denied)
  const headers = problemHeaders(denied, Buffer.byteLength(text))
  const unread = from.httpVersionMajor < 2 && hasBody(from) && !from.complete
  to.writeHead(denied.status, unread ? { ...headers, connection: 'close' } : headers)
  to.end(from.method === 'HEAD' ? undefined : text, () => {
    if (unread) from.socket.destroySoon()
  })
}
