// pure
import type { NetworkProfile, NetworkRule } from '../contract/profile.ts'
import { parseCidr } from './address.ts'
import { type HostPattern, parseHostPattern } from './hostname.ts'

export interface RuleProblem {
  readonly rule: string
  /** An error refuses the profile; a warning is shown by `puzzlectl profile check`. */
  readonly severity: 'error' | 'warning'
  readonly message: string
}

/** What is wrong with a network profile before any request: rules that cannot match, that contradict, that lie. */
export function checkRules(profile: NetworkProfile): readonly RuleProblem[] {
  const problems: RuleProblem[] = []
  const say = (rule: string, severity: RuleProblem['severity'], message: string): void => {
    problems.push({ rule, severity, message })
  }
  const seen = new Set<string>()
  for (const [index, rule] of profile.rules.entries()) {
    if (seen.has(rule.id)) say(rule.id, 'error', `Two rules have the id "${rule.id}"`)
    seen.add(rule.id)
    for (const message of ownErrors(rule)) say(rule.id, 'error', message)
    for (const earlier of profile.rules.slice(0, index)) compare(earlier, rule, say)
  }
  if (profile.mode === 'none' && profile.rules.length > 0)
    say('', 'error', 'The mode is "none", so the rules can never match')
  for (const grant of profile.credentials) {
    const name = `credential ${grant.placeholder}`
    if (grant.header === undefined && grant.query === undefined)
      say(name, 'error', 'It names neither a header nor a query parameter to put the secret into')
    if (grant.placeholder.length < 8)
      say(name, 'error', 'A placeholder needs at least 8 characters to be unmistakable')
    for (const host of grant.hosts) {
      const pattern = parseHostPattern(host)
      if (pattern === undefined) say(name, 'error', badHost(host))
      else if (
        !profile.rules.some(
          (rule) => rule.class !== 'deny' && rule.hosts.some((text) => overlaps(text, pattern)),
        )
      )
        say(name, 'warning', `No rule lets a request go to "${host}", so the credential is never used there`)
    }
  }
  return problems
}

const badHost = (host: string): string =>
  `"${host}" is neither a host nor "*." in front of at least two labels, so it can never match`

function ownErrors(rule: NetworkRule): readonly string[] {
  const errors: string[] = []
  if (rule.hosts.length === 0) errors.push('It names no host, so it can never match')
  if (rule.ports.length === 0) errors.push('It names no port, so it can never match')
  if (rule.methods !== 'any' && rule.methods.length === 0)
    errors.push('It names no method, so it can never match')
  if (rule.paths !== 'any' && rule.paths.length === 0) errors.push('It names no path, so it can never match')
  for (const host of rule.hosts) if (parseHostPattern(host) === undefined) errors.push(badHost(host))
  for (const port of rule.ports)
    if (!Number.isInteger(port) || port < 1 || port > 65_535) errors.push(`${port} is no port`)
  for (const path of rule.paths === 'any' ? [] : rule.paths)
    if (!/^(\/|\*\*)/.test(path)) errors.push(`"${path}" does not begin with a slash, so it can never match`)
  for (const method of rule.methods === 'any' ? [] : rule.methods) {
    if (!/^[A-Z][A-Z0-9-]*$/.test(method)) errors.push(`"${method}" is no method: methods are upper case`)
    if (['TRACE', 'TRACK', 'CONNECT'].includes(method)) errors.push(`${method} is never allowed`)
  }
  for (const text of rule.addresses ?? [])
    if (parseCidr(text) === undefined) errors.push(`"${text}" is no address or CIDR`)
  return [...errors, ...contradictions(rule)]
}

/** One rule whose parts cannot both hold. */
function contradictions(rule: NetworkRule): readonly string[] {
  const errors: string[] = []
  const reads =
    rule.methods === 'any' || rule.methods.some((method) => ['GET', 'HEAD', 'OPTIONS'].includes(method))
  if (rule.class === 'read' && !reads && rule.readBody === undefined && !isFetch(rule))
    errors.push('Its class is "read" but every method in it is a write, so it can only deny')
  if (
    rule.class === 'queue' &&
    rule.methods !== 'any' &&
    rule.methods.every((method) => ['GET', 'HEAD', 'OPTIONS'].includes(method))
  )
    errors.push('Its class is "queue" but every method in it is a read, so nothing is ever queued')
  if (rule.tls === 'tunnel' && rule.class !== 'live')
    errors.push(
      'A tunnel is opaque: what is in it cannot be read-only, queued or denied by path; its class must be "live"',
    )
  if (rule.tls === 'tunnel' && (rule.paths !== 'any' || rule.methods !== 'any'))
    errors.push('A tunnel is opaque: it cannot be limited to paths or methods')
  if (rule.readMethods !== undefined && rule.readBody !== 'json-rpc')
    errors.push('"readMethods" has no meaning without "readBody: json-rpc"')
  return errors
}

const isFetch = (rule: NetworkRule): boolean =>
  rule.paths !== 'any' && rule.paths.every((path) => path.endsWith('/git-upload-pack'))

function compare(
  earlier: NetworkRule,
  later: NetworkRule,
  say: (rule: string, severity: RuleProblem['severity'], message: string) => void,
): void {
  if (
    earlier.tls !== later.tls &&
    earlier.hosts.some((host) => sharesHost(host, later)) &&
    earlier.ports.some((port) => later.ports.includes(port))
  )
    say(
      later.id,
      'error',
      `It says "${later.tls}" for a host and port where rule "${earlier.id}" says "${earlier.tls}"`,
    )
  if (!covers(earlier, later)) return
  if (covers(later, earlier) && earlier.class !== later.class)
    say(
      later.id,
      'error',
      `It contradicts rule "${earlier.id}": the same requests, "${earlier.class}" there and "${later.class}" here`,
    )
  else
    say(
      later.id,
      'error',
      `It can never match: rule "${earlier.id}" comes first and matches everything it could`,
    )
}

const sharesHost = (host: string, rule: NetworkRule): boolean => {
  const pattern = parseHostPattern(host)
  return pattern !== undefined && rule.hosts.some((other) => overlaps(other, pattern))
}

const subset = <T>(small: readonly T[] | 'any', big: readonly T[] | 'any'): boolean =>
  big === 'any' || (small !== 'any' && small.every((value) => big.includes(value)))

/** Does `big` match every request that `small` could? Globs are compared as text, so this may miss, never accuse. */
function covers(big: NetworkRule, small: NetworkRule): boolean {
  const paths = big.paths !== 'any' && big.paths.includes('/**') ? 'any' : big.paths
  return (
    small.hosts.length > 0 &&
    small.hosts.every((host) => big.hosts.some((other) => hostCovers(other, host))) &&
    subset(small.ports, big.ports) &&
    subset(small.methods, big.methods) &&
    subset(small.paths, paths)
  )
}

function hostCovers(big: string, small: string): boolean {
  const outer = parseHostPattern(big)
  const inner = parseHostPattern(small)
  if (outer === undefined || inner === undefined) return false
  if (outer.kind === 'exact') return inner.kind === 'exact' && inner.text === outer.text
  return (inner.kind === 'exact' ? inner.text : inner.suffix).endsWith(outer.suffix)
}

function overlaps(text: string, pattern: HostPattern): boolean {
  const shown = pattern.kind === 'exact' ? pattern.text : `*${pattern.suffix}`
  return hostCovers(text, shown) || hostCovers(shown, text)
}
