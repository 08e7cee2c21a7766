// pure
import { domainToASCII, domainToUnicode } from 'node:url'
import { type Address, parseAddress } from './address.ts'
import { ownText } from './own-text.ts'

declare const canonical: unique symbol

/**
 * The one form of a host that is judged, resolved, dialled, certified and logged. Only `parseHostname` makes one, so
 * there is no second parser whose opinion could differ (S33).
 */
export interface Hostname {
  /** Lower-case LDH name without a trailing dot, or the canonical text of an address (IPv6 without brackets). */
  readonly text: string
  /** Set when the host is an address literal. */
  readonly address: Address | undefined
  readonly [canonical]: true
}

export type HostRefusal =
  | 'empty'
  | 'too-long'
  | 'control-character'
  | 'not-ascii'
  | 'userinfo'
  | 'bad-character'
  | 'empty-label'
  | 'trailing-dot'
  | 'label-too-long'
  | 'hyphen'
  | 'odd-address'
  | 'zone'
  | 'bad-brackets'
  | 'bad-punycode'
  | 'mixed-script'
  | 'bad-port'

export type HostResult = { ok: true; host: Hostname } | { ok: false; reason: HostRefusal }

const refuse = (reason: HostRefusal): { ok: false; reason: HostRefusal } => ({ ok: false, reason })
const accept = (text: string, address?: Address): { ok: true; host: Hostname } => ({
  ok: true,
  host: Object.freeze({ text, address }) as Hostname,
})

/** What nearly every host is: lower-case labels, the last of them no number, none of them encoded. */
const PLAIN = /^(?:(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*(?!xn--)[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** A host without a port. IPv6 literals may stand in brackets. Everything doubtful is refused, nothing is repaired. */
export function parseHostname(input: string | Uint8Array): HostResult {
  // latin1 keeps one byte one character: nothing can be decoded into something else.
  const text = typeof input === 'string' ? input : Buffer.from(input).toString('latin1')
  if (text.length <= 253 && PLAIN.test(text)) return accept(text)
  if (text === '') return refuse('empty')
  if (text.length > 255) return refuse('too-long')
  const character = badCharacter(text)
  if (character !== undefined) return refuse(character)
  if (/[[\]:]/.test(text)) return parseLiteral6(text)
  if (text.endsWith('.')) return refuse('trailing-dot')
  if (text.length > 253) return refuse('too-long')
  const lower = text.toLowerCase()
  const labels = lower.split('.')
  for (const label of labels) {
    const reason = badLabel(label)
    if (reason !== undefined) return refuse(reason)
  }
  const address = parseAddress(lower)
  if (address !== undefined) return accept(address.text, address)
  // What inet_aton and WHATWG URL take for an IPv4 address: the last label is a number, decimal, octal or hex.
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '')) return refuse('odd-address')
  return accept(lower)
}

function badCharacter(text: string): HostRefusal | undefined {
  if (/[\x00-\x20\x7f]/.test(text)) return 'control-character'
  if (/[^\x00-\x7f]/.test(text)) return 'not-ascii'
  if (text.includes('@')) return 'userinfo'
  if (/%/.test(text) && /[:[\]]/.test(text)) return 'zone'
  return /[^A-Za-z0-9.\-[\]:]/.test(text) ? 'bad-character' : undefined
}

function parseLiteral6(text: string): HostResult {
  const bracketed = text.startsWith('[') && text.endsWith(']')
  const inner = bracketed ? text.slice(1, -1) : text
  if (/[[\]]/.test(inner)) return refuse('bad-brackets')
  const address = inner.includes(':') ? parseAddress(inner) : undefined
  if (address === undefined) return refuse(bracketed ? 'bad-brackets' : 'odd-address')
  return accept(address.text, address)
}

function badLabel(label: string): HostRefusal | undefined {
  if (label === '') return 'empty-label'
  if (label.length > 63) return 'label-too-long'
  if (label.startsWith('-') || label.endsWith('-')) return 'hyphen'
  return label.startsWith('xn--') ? badPunycode(label) : undefined
}

/** Scripts that are written together in one language; anything else that mixes is a look-alike. */
const TOGETHER = [
  ['Han', 'Hiragana', 'Katakana'],
  ['Han', 'Bopomofo'],
  ['Han', 'Hangul'],
]
const SCRIPTS = [
  'Latin',
  'Cyrillic',
  'Greek',
  'Armenian',
  'Hebrew',
  'Arabic',
  'Devanagari',
  'Bengali',
  'Tamil',
  'Telugu',
  'Thai',
  'Georgian',
  'Cherokee',
  'Coptic',
  'Han',
  'Hiragana',
  'Katakana',
  'Bopomofo',
  'Hangul',
].map((name) => ({ name, pattern: new RegExp(`\\p{Script=${name}}`, 'u') }))

function badPunycode(label: string): HostRefusal | undefined {
  const shown = domainToUnicode(label)
  // It must decode, to something that is not plain ASCII, and encode back to exactly itself.
  if (shown === '' || /^[\x00-\x7f]*$/.test(shown) || domainToASCII(shown) !== label) return 'bad-punycode'
  const found = SCRIPTS.filter((script) => script.pattern.test(shown)).map((script) => script.name)
  if (found.length <= 1) return undefined
  return TOGETHER.some((set) => found.every((name) => set.includes(name))) ? undefined : 'mixed-script'
}

export interface Authority {
  readonly host: Hostname
  readonly port: number
}

export type AuthorityResult = ({ ok: true } & Authority) | { ok: false; reason: HostRefusal }

/** Agents name the same few places again and again, each of them twice in a request. */
const MOST_KNOWN = 256
const known = new Map<string, AuthorityResult>()

/** `host`, `host:port` or `[v6]:port`, as in a Host header, a CONNECT target or an absolute URL. */
export function parseAuthority(text: string, defaultPort: number): AuthorityResult {
  // No host is that long, and what is refused is not kept.
  if (text.length > 300) return readAuthority(text, defaultPort)
  const before = known.get(`${defaultPort} ${text}`)
  if (before !== undefined) return before
  const own = ownText(text)
  const read = readAuthority(own, defaultPort)
  if (!read.ok) return read
  if (known.size === MOST_KNOWN) known.clear()
  known.set(`${defaultPort} ${own}`, Object.freeze(read))
  return read
}

function readAuthority(text: string, defaultPort: number): AuthorityResult {
  const split = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/s.exec(text)
  // More than one colon without brackets: an IPv6 literal or an attack; either way the port is a guess.
  if (split === null) return refuse(badCharacter(text) ?? 'bad-brackets')
  const parsed = parseHostname(split[1] ?? '')
  if (!parsed.ok) return parsed
  if (split[2] === undefined) return { ok: true, host: parsed.host, port: defaultPort }
  const port = parsePort(split[2])
  return port === undefined ? refuse('bad-port') : { ok: true, host: parsed.host, port }
}

export function parsePort(text: string): number | undefined {
  if (!/^[1-9]\d{0,4}$/.test(text)) return undefined
  const port = Number(text)
  return port <= 65_535 ? port : undefined
}

/** As it stands in a URL or Host header. */
export const urlHost = (host: Hostname): string => (host.address?.family === 6 ? `[${host.text}]` : host.text)

export const formatAuthority = (host: Hostname, port: number, scheme: 'http' | 'https'): string =>
  port === (scheme === 'http' ? 80 : 443) ? urlHost(host) : `${urlHost(host)}:${port}`

/** A host pattern of a rule: an exact host, or `*.` in front of at least two labels. */
export type HostPattern =
  | { readonly kind: 'exact'; readonly text: string }
  | { readonly kind: 'below'; readonly suffix: string }

export function parseHostPattern(text: string): HostPattern | undefined {
  const below = text.startsWith('*.')
  const parsed = parseHostname(below ? text.slice(2) : text)
  if (!parsed.ok) return undefined
  if (!below) return { kind: 'exact', text: parsed.host.text }
  if (parsed.host.address !== undefined || !parsed.host.text.includes('.')) return undefined
  return { kind: 'below', suffix: `.${parsed.host.text}` }
}

export const matchesHost = (pattern: HostPattern, host: Hostname): boolean =>
  pattern.kind === 'exact'
    ? host.text === pattern.text
    : host.address === undefined && host.text.endsWith(pattern.suffix)
