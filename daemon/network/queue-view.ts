// pure
import type { QueuedRequest } from './queue-record.ts'
import { requestDigest } from './queue-record.ts'

/** A queued request as a person reads it before they approve it. */
export interface QueuedRequestView {
  readonly id: string
  readonly state: string
  readonly detail: string
  readonly queuedAt: string
  readonly method: string
  readonly url: string
  readonly rule: string
  /** Values that could be secrets of the agent's own are shortened; placeholders of credentials stand as they are. */
  readonly headers: readonly (readonly [string, string])[]
  readonly bytes: number
  readonly sha256: string
  /** JSON is indented; what is no text is described. Escapes of terminals are visible, never effective. */
  readonly body: string
  /** The body is longer than what is shown. */
  readonly cut: boolean
}

const SENSITIVE = /^(authorization|cookie|x-api-key|api-key|private-token|x-amz-security-token)$/
const SHOWN_BYTES = 16_384
/** Of a body that is read to be shown: JSON is only indented when all of it is there. */
export const READ_BYTES = 262_144

/** `body` is its first `READ_BYTES`, or all of it. */
export function viewOf(one: QueuedRequest, body: Buffer, placeholders: readonly string[]): QueuedRequestView {
  const { request } = one
  const standard = request.port === (request.scheme === 'https' ? 443 : 80)
  const host = request.host.includes(':') ? `[${request.host}]` : request.host
  return {
    id: one.id,
    state: one.state,
    detail: visible(one.detail),
    queuedAt: one.queuedAt,
    method: request.method,
    url: `${request.scheme}://${host}${standard ? '' : `:${request.port}`}${request.target}`,
    rule: request.rule,
    headers: request.headers.map(([name, value]) => [name, headerText(name, value, placeholders)] as const),
    bytes: request.body.size,
    sha256: requestDigest(request),
    body: bodyText(body, request.body.size),
    cut: request.body.size > SHOWN_BYTES,
  }
}

function headerText(name: string, value: string, placeholders: readonly string[]): string {
  if (!SENSITIVE.test(name)) return visible(value)
  const reference = placeholders.find((placeholder) => value.includes(placeholder))
  return reference === undefined ? `(${value.length} characters, not shown)` : `credential ${reference}`
}

function bodyText(body: Buffer, size: number): string {
  if (body.length === 0) return ''
  const whole = body.length === size ? body : withoutHalfCharacter(body)
  const text = whole.toString('utf8')
  if (!Buffer.from(text, 'utf8').equals(whole) || text.includes('\0'))
    return `(${size} bytes that are no text)`
  return visible(indented(text).slice(0, SHOWN_BYTES))
}

/** A cut through a character must not make a text look like none. */
function withoutHalfCharacter(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte >= 0xc0) return bytes.subarray(0, bytes.length - back)
    if (byte < 0x80) break
  }
  return bytes
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Control, bidirectional and invisible characters by their numbers: a reviewer must see what is there. */
const visible = (text: string): string =>
  text.replace(
    /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  )
