// pure
import { isHeader } from './answer-parser.ts'
import { NetworkDenied } from './denial.ts'
import type { Headers } from './request-nature.ts'

export interface RequestHead {
  readonly method: string
  readonly target: string
  /** As it stands in the Host header. */
  readonly authority: string
  /** Complete but for `host` and the framing; a `content-length` among them is the length of the body. */
  readonly headers: Headers
  readonly upgrade?: string | undefined
}

/** How the end of a body is told: by its length, by a last chunk, or there is none. */
export type Framing =
  | { readonly kind: 'none' | 'chunked' }
  | { readonly kind: 'length'; readonly bytes: number }

const PAYLOAD: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** The length of a body that is here counts more than what was said about it. */
export function framingOf(headers: Headers, body: { readonly length: number } | 'stream' | null): Framing {
  if (body === null) return { kind: 'none' }
  if (body !== 'stream') return { kind: 'length', bytes: body.length }
  const said = headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
  if (said === undefined) return { kind: 'chunked' }
  if (!/^\d{1,15}$/.test(said)) throw malformed('content-length')
  return { kind: 'length', bytes: Number(said) }
}

/** The request line and the headers, as they leave. Nothing in them can end a line but we. */
export function encodeHead(head: RequestHead, framing: Framing): string {
  const { method, target, authority, upgrade } = head
  if (!/^[A-Z-]+$/.test(method) || !/^[\x21-\x7e]+$/.test(target)) throw malformed('request line')
  let text = `${method} ${target} HTTP/1.1\r\nhost: ${authority}\r\n`
  for (const [name, value] of head.headers) {
    // Never the value: it may be a secret.
    if (!isHeader(name, value)) throw malformed(`header ${JSON.stringify(name.slice(0, 40))}`)
    if (!isOurs(name)) text += `${name}: ${value}\r\n`
  }
  text +=
    upgrade === undefined ? 'connection: keep-alive\r\n' : `connection: upgrade\r\nupgrade: ${upgrade}\r\n`
  if (framing.kind === 'chunked') text += 'transfer-encoding: chunked\r\n'
  else if (framing.kind === 'length') text += `content-length: ${framing.bytes}\r\n`
  else if (PAYLOAD.has(method)) text += 'content-length: 0\r\n'
  return `${text}\r\n`
}

const OURS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
])

const isOurs = (name: string): boolean => OURS.has(name.toLowerCase())

const malformed = (what: string): NetworkDenied =>
  new NetworkDenied(400, 'bad-framing', `The ${what} cannot be sent as it is`)
