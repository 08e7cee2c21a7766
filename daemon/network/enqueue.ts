import type { Readable } from 'node:stream'
import { PuzzledError } from '../lib/errors.ts'
import { type AgentRequest, type AgentResponse, hasBody } from './arriving.ts'
import { NetworkDenied } from './denial.ts'
import type { Gate } from './gate.ts'
import { requestHeaders } from './headers.ts'
import type { Decision, JudgedRequest } from './request-rule.ts'

/** Stores a write and answers 202 once it is durable. Placeholders of credentials are stored, never the secrets. */
export async function enqueue(
  gate: Gate,
  request: JudgedRequest,
  decision: Decision,
  from: AgentRequest,
  to: AgentResponse,
  before: Buffer = Buffer.alloc(0),
): Promise<void> {
  const allowed = decision.matched?.rule.headers?.map((name) => name.toLowerCase())
  const headers = requestHeaders(request.headers, { allowed, live: false }).filter(
    ([name]) => name !== 'content-length',
  )
  const { method, scheme, port, host, target } = request
  try {
    const body = await gate.queue.spool(joined(before, hasBody(from) ? from : undefined))
    const stored = { method, scheme, host: host.text, port, target: target.raw, headers, rule: decision.rule }
    const { id } = await gate.queue.add(stored, body)
    gate.queued(id, method, host.text)
    answer(to, id, gate.queue.usage.requests)
  } catch (error) {
    throw refusal(error)
  }
}

function answer(to: AgentResponse, id: string, position: number): void {
  const text = `${JSON.stringify({
    queued: true,
    id,
    position,
    message:
      'This write was not sent. It waits with the other changes of this branch and is sent after they are approved.',
  })}\n`
  to.writeHead(202, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    'cache-control': 'no-store',
    'puzzle-queued': id,
  })
  to.end(text)
}

async function* joined(before: Buffer, rest: Readable | undefined): AsyncGenerator<Uint8Array> {
  if (before.length > 0) yield before
  if (rest !== undefined) for await (const chunk of rest) yield chunk as Buffer
}

function refusal(error: unknown): NetworkDenied {
  const code = error instanceof PuzzledError ? error.code : undefined
  const message = error instanceof PuzzledError ? error.message : 'The write could not be stored'
  if (code === 'too-large') return new NetworkDenied(413, 'body-too-large', message, { cause: error })
  if (code === 'queue-full') return new NetworkDenied(429, 'queue-full', message, { cause: error })
  return new NetworkDenied(503, 'queue-unavailable', message, { cause: error, retryAfter: 5 })
}
