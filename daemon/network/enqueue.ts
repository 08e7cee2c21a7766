import type { Readable } from 'node:stream'
import { PuzzledError } from '../lib/errors.ts'
import type { AgentRequest, AgentResponse } from './agent-request.ts'
import { INLINE_BYTES } from './body-spool.ts'
import { NetworkDenied } from './denial.ts'
import type { Gate } from './gate.ts'
import { requestHeaders } from './headers.ts'
import type { StoredBody } from './queue-record.ts'
import type { Decision, JudgedRequest } from './request-rule.ts'

const NOTHING = Buffer.alloc(0)

/** Stores a write and answers 202 once it is durable. Placeholders of credentials are stored, never the secrets. */
export async function enqueue(
  gate: Gate,
  request: JudgedRequest,
  decision: Decision,
  from: AgentRequest,
  to: AgentResponse,
  before: Buffer = from.whole ?? NOTHING,
): Promise<void> {
  const allowed = decision.matched?.rule.headers?.map((name) => name.toLowerCase())
  const headers = requestHeaders(request.headers, { allowed, live: false }).filter(
    ([name]) => name !== 'content-length',
  )
  const { method, scheme, port, host, target } = request
  try {
    const looked = gate.queue.ready()
    if (looked !== undefined) await looked
    const body = await bodyOf(gate, before, from.body)
    const stored = { method, scheme, host: host.text, port, target: target.raw, headers, rule: decision.rule }
    const { id } = await gate.queue.add(stored, body)
    gate.queued(id, method, host.text)
    answer(to, id, gate.queue.usage.requests)
  } catch (error) {
    throw refusal(error)
  }
}

function answer(to: AgentResponse, id: string, position: number): void {
  const message =
    'This write was not sent. It waits with the other changes of this branch and is sent after they are approved.'
  const text = Buffer.from(`${JSON.stringify({ queued: true, id, position, message })}\n`)
  to.head(202, [
    ['content-type', 'application/json'],
    ['content-length', String(text.length)],
    ['cache-control', 'no-store'],
    ['puzzle-queued', id],
  ])
  to.write(text)
  to.end()
}

/** Most writes are small: collecting those takes no iterator, which costs more than everything else about them. */
async function bodyOf(gate: Gate, before: Buffer, rest: Readable | undefined): Promise<StoredBody> {
  // One that was read to be judged has ended already.
  const { bytes, whole } =
    rest === undefined || rest.readableEnded
      ? { bytes: before, whole: true }
      : await beginning(before, rest, INLINE_BYTES)
  if (whole && bytes.length <= INLINE_BYTES) return gate.queue.take(bytes)
  return await gate.queue.spool(joined(bytes, whole ? undefined : rest))
}

/** What there is of a body until it ends or is longer than the limit. */
function beginning(
  before: Buffer,
  rest: Readable,
  limit: number,
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  return new Promise((done, failed) => {
    const chunks: Buffer[] = [before]
    let size = before.length
    if (rest.destroyed) return void failed(new Error('The agent went away'))
    const stop = (act: () => void): void => {
      rest.off('data', take).off('end', ended).off('error', broken).off('close', gone)
      act()
    }
    const take = (chunk: Buffer): void => {
      chunks.push(chunk)
      size += chunk.length
      if (size <= limit) return
      rest.pause()
      stop(() => done({ bytes: Buffer.concat(chunks), whole: false }))
    }
    const ended = (): void => stop(() => done({ bytes: Buffer.concat(chunks), whole: true }))
    const broken = (error: Error): void => stop(() => failed(error))
    const gone = (): void => stop(() => failed(new Error('The agent went away')))
    rest.on('data', take).on('end', ended).on('error', broken).on('close', gone)
  })
}

async function* joined(before: Buffer, rest: Readable | undefined): AsyncGenerator<Uint8Array> {
  if (before.length > 0) yield before
  if (rest === undefined) return
  // Stopped before its end it must live on: over HTTP/2 the refusal goes back by the same stream.
  for await (const chunk of rest.iterator({ destroyOnReturn: false })) yield chunk as Buffer
}

function refusal(error: unknown): NetworkDenied {
  // The body broke, and it is known why.
  if (error instanceof NetworkDenied) return error
  const code = error instanceof PuzzledError ? error.code : undefined
  const message = error instanceof PuzzledError ? error.message : 'The write could not be stored'
  if (code === 'too-large') return new NetworkDenied(413, 'body-too-large', message, { cause: error })
  if (code === 'queue-full') {
    const help = error instanceof PuzzledError ? error.hint : undefined
    return new NetworkDenied(429, 'queue-full', message, { cause: error, help })
  }
  return new NetworkDenied(503, 'queue-unavailable', message, { cause: error, retryAfter: 5 })
}
