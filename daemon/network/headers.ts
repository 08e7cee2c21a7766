// pure
import { ownText } from './own-text.ts'
import type { Headers } from './request-nature.ts'

/** Speak about one connection, so they never pass through. `expect` is answered here; `host` is made anew. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * What leaves without a list of the rule's own: what common clients need. Everything else could carry data out of a
 * branch that may only read (S38), so it stays.
 */
const DEFAULT_ALLOWED =
  /^(accept(-.*)?|api-key|anthropic-.*|authorization|cache-control|content-(type|length|encoding|language|md5|disposition|range)|cookie|date|depth|digest|docker-.*|git-protocol|idempotency-key|if-.*|last-event-id|npm-.*|openai-.*|origin|pragma|prefer|private-token|range|referer|sec-websocket-.*|soapaction|traceparent|tracestate|user-agent|want-digest|x-amz-.*|x-api-key|x-api-version|x-csrf-token|x-github-.*|x-gitlab-.*|x-goog-.*|x-ms-.*|x-requested-with|x-request-id|x-stainless-.*|x-xsrf-token)$/

const OVERRIDES =
  /^x-(http-)?method(-override)?$|^x-original-(method|url|uri)$|^x-rewrite-url$|^x-forwarded-.*$|^forwarded$|^x-real-ip$/

export interface HeaderRule {
  /** The rule's own list, in lower case. */
  readonly allowed: readonly string[] | undefined
  /** Live rules are not limited to the default list. */
  readonly live: boolean
}

/** The request headers that go out, with lower-case names and in their order. */
export function requestHeaders(headers: Headers, rule: HeaderRule): Headers {
  const named = namedByConnection(headers)
  const out: (readonly [string, string])[] = []
  for (const header of headers) {
    const name = header[0].toLowerCase()
    if (HOP_BY_HOP.has(name) || named.has(name) || name.startsWith(':') || !leaves(name, rule)) continue
    out.push(name === header[0] ? header : [name, header[1]])
  }
  return out
}

function leaves(name: string, rule: HeaderRule): boolean {
  if (name === 'content-length' || name === 'content-type') return true
  if (rule.allowed !== undefined) return rule.allowed.includes(name)
  if (rule.live) return !/^(x-forwarded-.*|forwarded|x-real-ip)$/.test(name)
  return isDefault(name)
}

/** Of each name, because the same ones come with every request. */
const MOST_NAMES = 512
const defaults = new Map<string, boolean>()

function isDefault(name: string): boolean {
  const known = defaults.get(name)
  if (known !== undefined) return known
  const is = DEFAULT_ALLOWED.test(name) && !OVERRIDES.test(name)
  if (name.length > 64) return is
  if (defaults.size === MOST_NAMES) defaults.clear()
  defaults.set(ownText(name), is)
  return is
}

/** What comes back: everything that is not about the upstream connection, each statement once. */
export function responseHeaders(headers: Headers): Headers {
  const named = namedByConnection(headers)
  const passed: (readonly [string, string])[] = []
  const said: string[] = []
  let twice = false
  for (const header of headers) {
    const name = header[0].toLowerCase()
    if ((HOP_BY_HOP.has(name) && name !== 'trailer') || named.has(name) || name === 'alt-svc') continue
    passed.push(header)
    if (!SINGLE.has(name) && !JOINED.has(name)) continue
    twice ||= said.includes(name)
    said.push(name)
  }
  return twice ? once(passed) : passed
}

/** What HTTP/2 has one place for, and what readers of HTTP/1.1 would each choose another of. */
const SINGLE: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-max-age',
  'age',
  'content-length',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'etag',
  'expires',
  'from',
  'last-modified',
  'location',
  'max-forwards',
  'referer',
  'retry-after',
  'tk',
  'user-agent',
  'x-content-type-options',
])
/** Lists, of which HTTP/2 wants one line. */
const JOINED: ReadonlySet<string> = new Set(['content-encoding', 'content-language'])

/** Careless servers say some things twice. The first counts, as it does for most readers, and no other is passed on. */
function once(headers: Headers): Headers {
  const names = headers.map(([name]) => name.toLowerCase())
  return headers.flatMap(([name, value], at) => {
    const lower = names[at] ?? ''
    if (!SINGLE.has(lower) && !JOINED.has(lower)) return [[name, value] as const]
    if (names.indexOf(lower) !== at) return []
    if (SINGLE.has(lower)) return [[name, value] as const]
    const all = headers.filter((_, other) => names[other] === lower).map(([, one]) => one)
    return [[name, all.join(', ')] as const]
  })
}

const NONE: ReadonlySet<string> = new Set()
/** Nobody may strip what the other end relies on by naming it in Connection. */
const KEPT: ReadonlySet<string> = new Set(['content-length', 'content-type', 'authorization', 'cookie'])

/** Headers that the Connection header declares to be about this connection only. */
function namedByConnection(headers: Headers): ReadonlySet<string> {
  let found: Set<string> | undefined
  for (const [key, value] of headers) {
    if (key.length !== 10 || key.toLowerCase() !== 'connection') continue
    found ??= new Set()
    for (const token of value.split(',')) {
      const name = token.trim().toLowerCase()
      if (name !== '' && !KEPT.has(name)) found.add(name)
    }
  }
  return found ?? NONE
}

export type FramingRefusal =
  | 'no-host'
  | 'two-hosts'
  | 'two-lengths'
  | 'length-and-chunked'
  | 'bad-transfer-encoding'
  | 'bad-name'

/**
 * What makes two parsers see two requests (S37). Node's strict parser refuses most of it before this; this list does
 * not rely on that.
 */
export function badFraming(headers: Headers): FramingRefusal | undefined {
  let [hosts, lengths, encodings] = [0, 0, 0]
  let [badLength, badEncoding] = [false, false]
  for (const [key, value] of headers) {
    if (!NAME.test(key)) return 'bad-name'
    const name = key.toLowerCase()
    if (name === 'host') hosts++
    else if (name === 'content-length') {
      lengths++
      badLength ||= !/^\d+$/.test(value)
    } else if (name === 'transfer-encoding') {
      encodings++
      badEncoding ||= value.toLowerCase() !== 'chunked'
    }
  }
  if (hosts !== 1) return hosts === 0 ? 'no-host' : 'two-hosts'
  if (lengths > 1 || badLength) return 'two-lengths'
  if (encodings > 0 && lengths > 0) return 'length-and-chunked'
  return encodings > 1 || badEncoding ? 'bad-transfer-encoding' : undefined
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
