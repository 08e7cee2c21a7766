// pure
import type { QueueEdit } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Credential } from './credentials.ts'
import { requestHeaders } from './headers.ts'
import { type Authority, urlHost } from './hostname.ts'
import { LIMITS } from './limits.ts'
import type { HeaderPair, StoredRequest } from './queue-record.ts'
import { type CompiledRules, type Decision, decide } from './request-rule.ts'
import { parseAbsolute, parseTarget, type Target } from './request-target.ts'

/** A request without what its body says about it; the body is edited as bytes. */
export type EditedHead = Omit<StoredRequest, 'body'>

/**
 * The request after an edit, held against the same rules as an agent's own: a person cannot bring into the queue what
 * no rule would have queued, and no header that the rule would have kept back.
 */
export function editedRequest(known: StoredRequest, edit: QueueEdit, rules: CompiledRules): EditedHead {
  const method = edit.method ?? known.method
  if (!/^[A-Z][A-Z-]{0,31}$/.test(method)) throw wrong(`"${method}" is no method: methods are upper case`)
  const place = edit.url === undefined ? placeOf(known) : parsePlace(edit.url)
  const headers = withHeaders(known.headers, edit.headers ?? [])
  const decision = decide(rules, { ...place, method, headers })
  if (decision.class !== 'queue' && decision.class !== 'live')
    throw new PuzzledError('denied', `The request would not be queued as it is then: ${decision.reason}`, {
      hint: `Rule "${decision.rule}" decides it. ${decision.help ?? ''}`.trim(),
    })
  for (const { name, values } of edit.headers ?? []) refuseHeader(name, values, decision)
  const { scheme, host, port, target } = place
  return { method, scheme, host: host.text, port, target: target.raw, headers, rule: decision.rule }
}

interface Place extends Authority {
  readonly scheme: 'http' | 'https'
  readonly target: Target
}

function placeOf({ scheme, host, port, target }: StoredRequest): Place {
  const bracketed = host.includes(':') ? `[${host}]` : host
  return parsePlace(`${scheme}://${bracketed}:${port}${target}`)
}

function parsePlace(url: string): Place {
  const absolute = parseAbsolute(url)
  if (!absolute.ok) throw wrong(`"${url}" has no host that is plain and unambiguous`)
  const target = parseTarget(absolute.raw)
  if (!target.ok) throw wrong(`The path of "${urlHost(absolute.host)}" is refused: ${target.reason}`)
  const { scheme, host, port } = absolute
  return { scheme, host, port, target: target.target }
}

/** In the place of the first one that had the name, so that an edit moves nothing. */
function withHeaders(
  known: readonly HeaderPair[],
  edits: NonNullable<QueueEdit['headers']>,
): readonly HeaderPair[] {
  const wanted = new Map(edits.map(({ name, values }) => [name.toLowerCase(), values]))
  const placed = new Set<string>()
  const out: HeaderPair[] = []
  for (const [name, value] of known) {
    const key = name.toLowerCase()
    const values = wanted.get(key)
    if (values === undefined) out.push([name, value])
    else if (!placed.has(key)) out.push(...values.map((one) => [key, one] as const))
    placed.add(key)
  }
  for (const [key, values] of wanted)
    if (!placed.has(key)) out.push(...values.map((one) => [key, one] as const))
  return out
}

function refuseHeader(name: string, values: readonly string[], decision: Decision): void {
  const key = name.toLowerCase()
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(key)) throw wrong(`"${name}" is no name of a header`)
  if (key === 'content-length') throw wrong('The length follows from the body')
  if (key === 'idempotency-key' && values.length !== 1)
    throw wrong('A request needs exactly one Idempotency-Key, or a repetition of it could not be told')
  if (values.some((value) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)))
    throw wrong(`The value of "${name}" holds a control character`)
  const bytes = values.reduce((sum, value) => sum + value.length, key.length)
  if (bytes > LIMITS.headerBytes) throw new PuzzledError('too-large', `The header "${name}" is too large`)
  const allowed = decision.matched?.rule.headers?.map((one) => one.toLowerCase())
  const rule = { allowed, live: decision.class === 'live' }
  if (requestHeaders([[key, values[0] ?? '']], rule).length === 0)
    throw new PuzzledError('denied', `Rule "${decision.rule}" lets no header "${name}" out`, {
      hint: `network.rules: {id: ${decision.rule}, headers: [${key}, …]}`,
    })
}

/** A secret that a person typed in would stand in the queue's file: its placeholder belongs there. */
export function refuseSecrets(edit: QueueEdit, credentials: readonly Credential[]): void {
  const texts = [edit.url ?? '', ...(edit.headers ?? []).flatMap(({ values }) => values)]
  const body = Buffer.from(edit.body ?? [])
  for (const credential of credentials)
    for (const secret of credential.spellings())
      if (texts.some((text) => text.includes(secret)) || body.includes(secret))
        throw wrong(`The edit holds the secret of "${credential.placeholder}": write the placeholder instead`)
}

const wrong = (message: string): PuzzledError => new PuzzledError('usage', message)
