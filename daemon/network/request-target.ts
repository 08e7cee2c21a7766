// pure
import { type Authority, parseAuthority } from './hostname.ts'

export type TargetRefusal =
  | 'not-ascii'
  | 'control-character'
  | 'backslash'
  | 'fragment'
  | 'bad-escape'
  | 'encoded-nul'
  | 'dot-segment'
  | 'too-long'
  | 'not-a-path'

export interface Target {
  /** As it goes on the wire, byte for byte what the agent wrote. */
  readonly raw: string
  /**
   * Every path that a server could see in it: as decoded once, with an encoded slash read as a slash, decoded twice,
   * with empty segments merged. A request is judged in all of them and refused if they are not judged alike.
   */
  readonly readings: readonly string[]
  /** Without the question mark. */
  readonly query: string
}

export const MAX_TARGET = 16_384

/** The origin form: a path that starts with a slash, and a query. Anything ambiguous enough to escape a glob is refused. */
export function parseTarget(
  raw: string,
): { ok: true; target: Target } | { ok: false; reason: TargetRefusal } {
  const reason = badTarget(raw)
  if (reason !== undefined) return { ok: false, reason }
  const mark = raw.indexOf('?')
  const path = mark < 0 ? raw : raw.slice(0, mark)
  const query = mark < 0 ? '' : raw.slice(mark + 1)
  const readings = readingsOf(path)
  return typeof readings === 'string'
    ? { ok: false, reason: readings }
    : { ok: true, target: { raw, readings, query } }
}

function badTarget(raw: string): TargetRefusal | undefined {
  if (!raw.startsWith('/')) return 'not-a-path'
  if (raw.length > MAX_TARGET) return 'too-long'
  if (/[\x00-\x20\x7f]/.test(raw)) return 'control-character'
  if (/[^\x00-\x7f]/.test(raw)) return 'not-ascii'
  if (raw.includes('\\')) return 'backslash'
  if (raw.includes('#')) return 'fragment'
  return undefined
}

/** Nothing that anybody would read in a second way: no escapes, dots, parameters or empty segments. */
const PLAIN = /^(?:\/[A-Za-z0-9_~!$&'()*+,=:@-][A-Za-z0-9_~!$&'()*+,=:@.-]*)*\/?$/

function readingsOf(path: string): readonly string[] | TargetRefusal {
  if (PLAIN.test(path)) return [path]
  if (/%(?![0-9a-fA-F]{2})/.test(path)) return 'bad-escape'
  const found = new Set<string>()
  const once = decode(path, true)
  for (const reading of [once, decode(path, false), decode(decode(path, false), false)]) {
    if (/[\x00-\x1f\x7f]/.test(reading)) return 'encoded-nul'
    if (reading.includes('\\')) return 'backslash'
    // `..;x` is `..` for servers that know path parameters. A plain `.` (apt writes it) is kept by some servers and
    // dropped by others, and leads nowhere else in either.
    if (/(^|\/)(\.\.(;[^/]*)?|\.;[^/]*)(\/|$)/.test(reading)) return 'dot-segment'
    for (const one of [reading, withoutDots(reading)]) {
      found.add(one)
      found.add(one.replace(/\/{2,}/g, '/'))
    }
  }
  return [...found]
}

const withoutDots = (path: string): string => path.replace(/\/(?:\.\/)+/g, '/').replace(/\/\.$/, '/')

/** Bytes become characters one to one, so that no Unicode decoding can turn several spellings into one. */
const decode = (text: string, keepSlash: boolean): string =>
  text.replace(/%([0-9a-fA-F]{2})/g, (whole, hex: string) => {
    if (keepSlash && hex.toLowerCase() === '2f') return whole.toUpperCase()
    return String.fromCharCode(Number.parseInt(hex, 16))
  })

/** Query parameters, decoded like forms; names and values of a query that does not decode stay as they are. */
export function queryParameters(query: string): readonly (readonly [string, string])[] {
  if (query === '') return []
  return query
    .split(/[&;]/)
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=')
      const name = equals < 0 ? pair : pair.slice(0, equals)
      return [formDecode(name), equals < 0 ? '' : formDecode(pair.slice(equals + 1))] as const
    })
}

const formDecode = (text: string): string => {
  const spaced = text.replace(/\+/g, ' ')
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}

/** The absolute form, as clients send it to a proxy. */
export function parseAbsolute(
  text: string,
): ({ ok: true; scheme: 'http' | 'https'; raw: string } & Authority) | { ok: false } {
  const scheme = text.startsWith('http://') ? 'http' : text.startsWith('https://') ? 'https' : undefined
  if (scheme === undefined) return parseOddAbsolute(text)
  const from = scheme.length + 3
  let to = from
  while (to < text.length && !isAuthorityEnd(text.charCodeAt(to))) to++
  return absoluteOf(scheme, text.slice(from, to), text.slice(to))
}

/** `/`, `?` and `#`. */
const isAuthorityEnd = (code: number): boolean => code === 47 || code === 63 || code === 35

/** Schemes may be written in capitals. */
function parseOddAbsolute(text: string): ReturnType<typeof parseAbsolute> {
  const split = /^(https?):\/\/([^/?#]*)(.*)$/is.exec(text)
  if (split === null) return { ok: false }
  return absoluteOf(split[1]?.toLowerCase() === 'https' ? 'https' : 'http', split[2] ?? '', split[3] ?? '')
}

function absoluteOf(scheme: 'http' | 'https', named: string, rest: string): ReturnType<typeof parseAbsolute> {
  const authority = parseAuthority(named, scheme === 'https' ? 443 : 80)
  if (!authority.ok) return { ok: false }
  const { host, port } = authority
  return { ok: true, host, port, scheme, raw: rest.startsWith('/') ? rest : `/${rest}` }
}

/**
 * Globs over decoded paths: `*` is anything within a segment, `**` anything at all, `?` one character. A glob that
 * ends in `/**` also matches the path without it.
 */
export function compileGlob(glob: string): RegExp {
  let source = ''
  for (let at = 0; at < glob.length; at++) {
    const rest = glob.slice(at)
    if (rest === '/**') {
      source += '(?:/.*)?'
      break
    }
    if (rest.startsWith('**')) {
      source += '.*'
      at++
    } else if (rest.startsWith('*')) source += '[^/]*'
    else if (rest.startsWith('?')) source += '[^/]'
    else source += rest.charAt(0).replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  }
  return new RegExp(`^${source}$`, 's')
}

export const matchesGlob = (glob: string, text: string): boolean => compileGlob(glob).test(text)
