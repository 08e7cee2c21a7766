import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { RequestQueue } from './queue.ts'
import type { QueuedRequest, StoredResponse } from './queue-record.ts'

export type SendOutcome =
  | { readonly kind: 'answered'; readonly response: StoredResponse }
  /** Not one byte of it left: it may be sent again. */
  | { readonly kind: 'not-sent'; readonly reason: string }
  /** It left, wholly or in part, and no complete answer came: nobody can know what happened. */
  | { readonly kind: 'unknown'; readonly reason: string }

export interface ReplayPorts {
  /** Rules, budgets and addresses as they are now; the approval was for the request, not for where it goes today. */
  judge(
    request: QueuedRequest,
  ): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>
  send(request: QueuedRequest): Promise<SendOutcome>
  onState?(request: QueuedRequest): void
}

export interface ReplayReport {
  readonly sent: readonly string[]
  /** Where it stopped: everything behind it waits. */
  readonly stopped: { readonly id: string; readonly state: string; readonly reason: string } | undefined
  readonly waiting: number
}

/**
 * Sends the approved requests in order and stops at the first that does not succeed. Each is `sending` on disk before
 * its first byte leaves and has its result on disk before the next one starts. A request that failed or is unknown
 * stops the replay again until a person resumes or skips it.
 */
export async function replay(queue: RequestQueue, ports: ReplayPorts): Promise<ReplayReport> {
  return await run(queue, ports, undefined)
}

/** A person decided: try `id` again, then go on behind it. For `unknown` this can be a second delivery; they know. */
export async function resume(queue: RequestQueue, ports: ReplayPorts, id: string): Promise<ReplayReport> {
  const { state } = queue.get(id)
  if (state !== 'failed' && state !== 'unknown')
    throw new PuzzledError(
      'wrong-state',
      `Request "${id}" is ${state}: only a failed or unknown one can be resumed`,
    )
  return await run(queue, ports, id)
}

/** A person decided: leave `id` out. The caller replays what is behind it. */
export async function skip(queue: RequestQueue, id: string, reason: string): Promise<void> {
  const { state } = queue.get(id)
  if (state !== 'failed' && state !== 'unknown' && state !== 'approved')
    throw new PuzzledError(
      'wrong-state',
      `Request "${id}" is ${state}: only one that a commit was to send can be skipped`,
      state === 'queued'
        ? { hint: 'One that still waits for the commit is dropped: puzzlectl queue drop' }
        : {},
    )
  await queue.move(id, 'skipped', reason)
}

async function run(
  queue: RequestQueue,
  ports: ReplayPorts,
  again: string | undefined,
): Promise<ReplayReport> {
  const sent: string[] = []
  const waitingNow = (): number => queue.list().filter((one) => one.state === 'approved').length
  for (const { id } of queue.list()) {
    const { state, detail } = queue.get(id)
    const mine = state === 'approved' || id === again
    if (!mine && (state === 'failed' || state === 'unknown' || state === 'sending'))
      return { sent, stopped: { id, state, reason: detail }, waiting: waitingNow() }
    if (!mine) continue
    await sendOne(queue, ports, id)
    const after = queue.get(id)
    if (after.state !== 'sent')
      return { sent, stopped: { id, state: after.state, reason: after.detail }, waiting: waitingNow() }
    sent.push(id)
  }
  return { sent, stopped: undefined, waiting: 0 }
}

async function sendOne(queue: RequestQueue, ports: ReplayPorts, id: string): Promise<void> {
  const verdict = await ports.judge(queue.get(id))
  if (!verdict.ok) {
    await queue.move(id, 'failed', `Refused at replay: ${verdict.reason}`)
    ports.onState?.(queue.get(id))
    return
  }
  failpoint('replay.before-sending')
  await queue.move(id, 'sending')
  failpoint('replay.sending')
  ports.onState?.(queue.get(id))
  const outcome = await trySend(ports, queue.get(id))
  failpoint('replay.answered')
  if (outcome.kind === 'answered') {
    const { status } = outcome.response
    await queue.move(id, succeeded(status) ? 'sent' : 'failed', `Answered ${status}`, outcome.response)
  } else await queue.move(id, outcome.kind === 'not-sent' ? 'failed' : 'unknown', outcome.reason)
  failpoint('replay.recorded')
  ports.onState?.(queue.get(id))
}

async function trySend(ports: ReplayPorts, request: QueuedRequest): Promise<SendOutcome> {
  try {
    return await ports.send(request)
  } catch (error) {
    return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) }
  }
}

/** 303 is how a server says that a POST was done; other redirects ask for a request that nobody reviewed. */
const succeeded = (status: number): boolean => (status >= 200 && status < 300) || status === 303
