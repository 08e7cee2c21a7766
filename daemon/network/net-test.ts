// pure
import type { NetTestAnswer } from '../contract/engine.ts'
import type { NetworkProfile } from '../contract/profile.ts'
import { NameGuard } from './name-guard.ts'
import { compileRules, decide } from './request-rule.ts'
import { parseAbsolute, parseTarget } from './request-target.ts'

/** `puzzlectl net test`: what the proxy would decide for this request, from the same rules and the same code. */
export function netTest(network: NetworkProfile, method: string, url: string): NetTestAnswer {
  const refuse = (rule: string, reason: string): NetTestAnswer => ({ class: 'deny', rule, reason, open: [] })
  const absolute = parseAbsolute(url)
  if (!absolute.ok) return refuse('bad-host', `"${url}" has no host that is plain and unambiguous`)
  const target = parseTarget(absolute.raw.replace(/#.*$/s, ''))
  if (!target.ok) return refuse('bad-target', `The path is refused: ${target.reason}`)
  const rules = compileRules(network)
  const decision = decide(rules, {
    method: method.toUpperCase(),
    scheme: absolute.scheme,
    host: absolute.host,
    port: absolute.port,
    target: target.target,
    headers: [],
  })
  const name = new NameGuard(rules).check(absolute.host, 0)
  if (decision.class !== 'deny' && !name.ok) return refuse(name.rule, name.reason)
  const open = [
    ...(decision.needsBody === undefined ? [] : [`the ${decision.needsBody} body may make it a read`]),
    ...(decision.class === 'deny'
      ? []
      : ['the addresses that the name resolves to', 'the budgets of the rule']),
  ]
  const { class: kind, rule, reason, help } = decision
  return help === undefined ? { class: kind, rule, reason, open } : { class: kind, rule, reason, help, open }
}
