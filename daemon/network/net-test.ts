// pure
import type { NetworkProfile } from '../contract/profile.ts'
import { compileRules, decide } from './request-rule.ts'
import { parseAbsolute, parseTarget } from './request-target.ts'

export interface NetTestAnswer {
  readonly class: 'live' | 'read' | 'queue' | 'deny'
  readonly rule: string
  readonly reason: string
  readonly help?: string
  /** What only the real request can show. */
  readonly open: readonly string[]
}

/** `puzzlectl net test`: what the proxy would decide for this request, from the same rules and the same code. */
export function netTest(network: NetworkProfile, method: string, url: string): NetTestAnswer {
  const refuse = (rule: string, reason: string): NetTestAnswer => ({ class: 'deny', rule, reason, open: [] })
  const absolute = parseAbsolute(url)
  if (!absolute.ok) return refuse('bad-host', `"${url}" has no host that is plain and unambiguous`)
  const target = parseTarget(absolute.raw.replace(/#.*$/s, ''))
  if (!target.ok) return refuse('bad-target', `The path is refused: ${target.reason}`)
  const decision = decide(compileRules(network), {
    method: method.toUpperCase(),
    scheme: absolute.scheme,
    host: absolute.host,
    port: absolute.port,
    target: target.target,
    headers: [],
  })
  const open = [
    ...(decision.needsBody === undefined ? [] : [`the ${decision.needsBody} body may make it a read`]),
    ...(decision.class === 'deny'
      ? []
      : ['the addresses that the name resolves to', 'the budgets of the rule']),
  ]
  const { class: kind, rule, reason, help } = decision
  return help === undefined ? { class: kind, rule, reason, open } : { class: kind, rule, reason, help, open }
}
