// pure
import { createHash } from 'node:crypto'
import { PuzzledError } from '../lib/errors.ts'

/**
 * The queue's log is lines of `<16 hex of SHA-256> <json>\n`, only ever appended. What a request is now follows from
 * folding its records in order. A last line that is cut or does not verify was never acknowledged and is absent; any
 * other damage is kept and shown, and a damaged queue neither takes nor sends anything.
 */
export const QUEUE_VERSION = 1

export type RequestState =
  | 'queued'
  | 'approved'
  | 'sending'
  | 'sent'
  | 'failed'
  | 'unknown'
  | 'dropped'
  | 'skipped'

/** Nothing else changes the state of a request. `dropped` is before, `skipped` after the commit. */
export const REQUEST_MOVES: Readonly<Record<RequestState, readonly RequestState[]>> = {
  queued: ['approved', 'dropped'],
  // Back to `queued` where another commit than the one that approved it goes on without it.
  approved: ['sending', 'failed', 'skipped', 'queued'],
  sending: ['sent', 'failed', 'unknown'],
  sent: [],
  // Back to `queued` where its commit did not land: it is judged again with the next one.
  failed: ['sending', 'failed', 'skipped', 'queued'],
  // Only a person moves a request out of here: nobody can know whether the other end acted on it.
  unknown: ['sending', 'failed', 'skipped', 'queued'],
  dropped: [],
  skipped: [],
}

export type HeaderPair = readonly [name: string, value: string]

/** As the agent wrote it: credentials are still their placeholders. */
export interface StoredRequest {
  readonly method: string
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
  readonly target: string
  readonly headers: readonly HeaderPair[]
  readonly body: StoredBody
  /** The rule that queued it. */
  readonly rule: string
}

export interface StoredBody {
  readonly size: number
  readonly sha256: string
  /** Base64 of a small body; a large one is a file of the queue's directory. */
  readonly inline?: string
  readonly file?: string
}

export interface StoredResponse {
  readonly status: number
  readonly headers: readonly HeaderPair[]
  /** Base64 of the beginning. */
  readonly body: string
  readonly truncated: boolean
}

export type QueueRecord =
  | { readonly op: 'open'; readonly version: number }
  | {
      readonly op: 'queued' | 'edited'
      readonly id: string
      readonly time: string
      readonly request: StoredRequest
    }
  | {
      readonly op: 'state'
      readonly id: string
      readonly time: string
      readonly to: RequestState
      readonly detail?: string
      readonly response?: StoredResponse
    }

export interface QueuedRequest {
  readonly id: string
  readonly queuedAt: string
  readonly updatedAt: string
  readonly state: RequestState
  readonly detail: string
  readonly request: StoredRequest
  readonly response: StoredResponse | undefined
  /** How often it was edited. */
  readonly edits: number
}

export function encodeRecord(record: QueueRecord): string {
  const json = JSON.stringify(record)
  return `${checksum(json)} ${json}\n`
}

const checksum = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

export interface ReadLog {
  readonly requests: ReadonlyMap<string, QueuedRequest>
  /** Bytes up to the end of the last good record. */
  readonly goodBytes: number
  readonly torn: boolean
  readonly damage: readonly string[]
}

export function readLog(bytes: Buffer): ReadLog {
  const requests = new Map<string, QueuedRequest>()
  const damage: string[] = []
  let torn = false
  let goodBytes = 0
  for (let from = 0, number = 1; from < bytes.length; number++) {
    const newline = bytes.indexOf(10, from)
    const end = newline < 0 ? bytes.length : newline
    const record = decodeRecord(bytes.toString('utf8', from, end))
    const isLast = newline < 0 || newline === bytes.length - 1
    if (newline < 0 || (record === undefined && isLast)) torn = true
    else {
      const problem = record === undefined ? 'does not verify' : apply(requests, record)
      if (problem !== undefined) damage.push(`line ${number} ${problem}`)
      else goodBytes = newline + 1
    }
    from = end + 1
  }
  return { requests, goodBytes, torn, damage }
}

function decodeRecord(line: string): QueueRecord | undefined {
  const json = line.slice(17)
  if (line[16] !== ' ' || line.slice(0, 16) !== checksum(json)) return undefined
  return JSON.parse(json) as QueueRecord
}

/** Folds one record in; the result says why it cannot be true. */
export function apply(requests: Map<string, QueuedRequest>, record: QueueRecord): string | undefined {
  if (record.op === 'open') {
    if (record.version > QUEUE_VERSION)
      throw new PuzzledError('state-newer', `The request queue has version ${record.version}`)
    return undefined
  }
  const known = requests.get(record.id)
  const { id, time } = record
  if (record.op === 'queued') {
    if (known !== undefined) return `queues "${id}" a second time`
    const fresh = { state: 'queued', detail: '', response: undefined, edits: 0 } as const
    requests.set(id, { id, queuedAt: time, updatedAt: time, request: record.request, ...fresh })
    return undefined
  }
  if (known === undefined) return `speaks of "${id}", which was never queued`
  if (record.op === 'edited') {
    if (known.state !== 'queued' && known.state !== 'approved')
      return `edits "${id}" while it is ${known.state}`
    // What was approved was the request as it was.
    const edited = { state: 'queued', request: record.request, edits: known.edits + 1 } as const
    requests.set(id, { ...known, ...edited, updatedAt: time })
    return undefined
  }
  if (record.op !== 'state') return `has the unknown operation "${String((record as { op: unknown }).op)}"`
  if (!REQUEST_MOVES[known.state].includes(record.to))
    return `moves "${id}" from ${known.state} to ${record.to}`
  const response = record.response ?? known.response
  requests.set(id, { ...known, updatedAt: time, state: record.to, detail: record.detail ?? '', response })
  return undefined
}

/** Hex SHA-256 of the request as it will be replayed; what an approval is bound to. */
export function requestDigest(request: StoredRequest): string {
  const { method, scheme, host, port, target, headers, body } = request
  const canonical = [QUEUE_VERSION, method, scheme, host, port, target, headers, body.size, body.sha256]
  return createHash('sha256').update(JSON.stringify(canonical)).digest('hex')
}
