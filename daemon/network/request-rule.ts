// pure
import type { NetworkProfile, NetworkRule, RequestClass } from '../contract/profile.ts'
import { type Cidr, parseCidr } from './address.ts'
import { type Hostname, type HostPattern, matchesHost, parseHostPattern } from './hostname.ts'
import { type Nature, natureOf, type RequestShape } from './request-nature.ts'
import { compileGlob } from './request-target.ts'

/** A rule with its globs compiled once per branch. */
export interface CompiledRule {
  readonly rule: NetworkRule
  readonly hosts: readonly HostPattern[]
  readonly paths: readonly RegExp[] | 'any'
  readonly addresses: readonly Cidr[]
}

export interface CompiledRules {
  readonly mode: NetworkProfile['mode']
  readonly rules: readonly CompiledRule[]
}

export interface JudgedRequest extends RequestShape {
  readonly scheme: 'http' | 'https'
  readonly host: Hostname
  readonly port: number
}

export interface Decision {
  readonly class: RequestClass
  /** Id of the rule, or what stands in its place: `no-rule`, `open-read`, `trace`, `ambiguous-path`. */
  readonly rule: string
  /** A sentence for the agent and the operator. */
  readonly reason: string
  /** The grant that would help, where there is one. */
  readonly help?: string
  readonly matched?: CompiledRule
  /** Set when the body decides between read and write: call `decideWithBody`. */
  readonly needsBody?: 'graphql' | 'json-rpc'
}

/** Patterns that do not parse match nothing: an empty or broken list never means everything (CVE-2025-66479). */
export function compileRules(profile: Pick<NetworkProfile, 'mode' | 'rules'>): CompiledRules {
  return {
    mode: profile.mode,
    rules: profile.rules.map((rule) => ({
      rule,
      hosts: rule.hosts.map(parseHostPattern).filter((pattern) => pattern !== undefined),
      paths: rule.paths === 'any' ? 'any' : rule.paths.map(compileGlob),
      addresses: (rule.addresses ?? []).map(parseCidr).filter((cidr) => cidr !== undefined),
    })),
  }
}

/** The class of a request, by the first rule that matches it. Pure: the same for the proxy, replay and `net test`. */
export function decide(rules: CompiledRules, request: JudgedRequest): Decision {
  if (rules.mode === 'none') return deny('no-network', 'The profile gives this branch no network')
  if (request.method === 'TRACE' || request.method === 'TRACK')
    return deny('trace', `${request.method} would show headers that the agent must not see`)
  const nature = natureOf(request)
  const decisions = request.target.readings.map((path) => decideReading(rules, request, nature, path))
  const [first] = decisions
  if (first === undefined) return deny('ambiguous-path', 'The path cannot be read')
  if (decisions.some((other) => other.class !== first.class || other.rule !== first.rule))
    return deny('ambiguous-path', 'Servers could read this path in two ways that the rules judge differently')
  return first
}

function decideReading(rules: CompiledRules, request: JudgedRequest, nature: Nature, path: string): Decision {
  const matched = rules.rules.find((rule) => matches(rule, request, nature, path))
  if (matched !== undefined) return decideByRule(matched, request, nature)
  const where = `${request.method} ${request.scheme}://${request.host.text}:${request.port}`
  if (rules.mode === 'open-read') {
    if (nature.kind === 'read')
      return { class: 'read', rule: 'open-read', reason: 'The profile lets every host be read' }
    return deny(
      'open-read',
      `Without a rule only reads may leave, and this is a write: ${nature.because}`,
      grantFor(request, 'queue'),
    )
  }
  return deny(
    'no-rule',
    `No rule of the profile allows ${where}`,
    grantFor(request, nature.kind === 'read' ? 'read' : 'queue'),
  )
}

function matches(compiled: CompiledRule, request: JudgedRequest, nature: Nature, path: string): boolean {
  const { rule } = compiled
  return (
    compiled.hosts.some((pattern) => matchesHost(pattern, request.host)) &&
    rule.ports.includes(request.port) &&
    (rule.methods === 'any' || nature.methods.every((method) => rule.methods.includes(method))) &&
    (compiled.paths === 'any' || compiled.paths.some((glob) => glob.test(path)))
  )
}

function decideByRule(matched: CompiledRule, request: JudgedRequest, nature: Nature): Decision {
  const { rule } = matched
  const by = { rule: rule.id, matched }
  if (rule.class === 'deny')
    return { ...by, class: 'deny', reason: `Rule "${rule.id}" denies it: ${rule.why}` }
  if (rule.class === 'live') return { ...by, class: 'live', reason: rule.why }
  if (nature.kind === 'read') return { ...by, class: 'read', reason: rule.why }
  if (nature.interactive)
    return {
      ...by,
      class: 'deny',
      reason: `Rule "${rule.id}" cannot hold it back until the commit: ${nature.because}, which needs an answer now`,
      help: grantFor(request, 'live'),
    }
  const write: Decision =
    rule.class === 'queue'
      ? { ...by, class: 'queue', reason: rule.why }
      : {
          ...by,
          class: 'deny',
          reason: `Rule "${rule.id}" allows reads only, and this is a write: ${nature.because}`,
          help: grantFor(request, 'queue'),
        }
  const bodyDecides = rule.readBody !== undefined && request.method === 'POST' && nature.methods.length === 1
  return bodyDecides && rule.readBody !== undefined ? { ...write, needsBody: rule.readBody } : write
}

/** The second half of a decision that waited for the body. */
export function decideWithBody(decision: Decision, bodyIsRead: boolean): Decision {
  const { needsBody: _, ...write } = decision
  if (!bodyIsRead || decision.matched === undefined) return write
  const { help: __, ...read } = write
  return { ...read, class: 'read', reason: decision.matched.rule.why }
}

function deny(rule: string, reason: string, help?: string): Decision {
  return help === undefined ? { class: 'deny', rule, reason } : { class: 'deny', rule, reason, help }
}

/** A rule that would let the request through, as a line to paste into the profile. */
function grantFor(request: JudgedRequest, kind: RequestClass): string {
  const path = JSON.stringify(request.target.readings[0] ?? '/')
  return `network.rules: {hosts: [${JSON.stringify(request.host.text)}], ports: [${request.port}], methods: [${request.method}], paths: [${path}], class: ${kind}}`
}

/** How a TLS connection to this host is treated, before any request in it is known. */
export function connectionRule(
  rules: CompiledRules,
  host: Hostname,
  port: number,
):
  | { allowed: false; decision: Decision }
  | { allowed: true; tls: 'intercept' | 'tunnel'; matched?: CompiledRule } {
  if (rules.mode === 'none')
    return { allowed: false, decision: deny('no-network', 'The profile gives this branch no network') }
  const matched = rules.rules.filter(
    ({ rule, hosts }) => rule.ports.includes(port) && hosts.some((pattern) => matchesHost(pattern, host)),
  )
  const [first] = matched
  if (first !== undefined) {
    // A tunnel hides methods and paths, so it is only given when nothing of this host is to be judged by them.
    const opaque = matched.every(({ rule }) => rule.tls === 'tunnel' && rule.class === 'live')
    if (opaque) return { allowed: true, tls: 'tunnel', matched: first }
    if (matched.some(({ rule }) => rule.class !== 'deny')) return { allowed: true, tls: 'intercept' }
    return {
      allowed: false,
      decision: {
        class: 'deny',
        rule: first.rule.id,
        matched: first,
        reason: `Rule "${first.rule.id}" denies it: ${first.rule.why}`,
      },
    }
  }
  if (rules.mode === 'open-read' && (port === 443 || port === 80)) return { allowed: true, tls: 'intercept' }
  return {
    allowed: false,
    decision: deny(
      'no-rule',
      `No rule of the profile allows ${host.text}:${port}`,
      `network.rules: {hosts: [${JSON.stringify(host.text)}], ports: [${port}], class: read}`,
    ),
  }
}
