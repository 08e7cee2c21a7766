// pure
import { z } from 'zod'
import type { Finding, Severity, Tier, Verdict, VerdictKind } from '../contract/verdict.ts'

const finding = z.strictObject({
  rule: z.string().min(1).max(200),
  severity: z.enum(['info', 'low', 'medium', 'high', 'critical']),
  message: z.string().max(20_000),
  path: z.string().max(20_000).optional(),
  help: z.string().max(20_000).optional(),
})

/** What a policy must answer: this and nothing else. An unknown key is garbage, and garbage is deny. */
export const decisionSchema = z.strictObject({
  version: z.literal(1),
  allow: z.boolean(),
  deny: z.array(finding).max(20_000),
  hold: z.array(finding).max(20_000),
  warn: z.array(finding).max(20_000),
  tier: z.enum(['auto', 'auto_notify', 'approval_required', 'forbidden']),
  obligations: z.array(z.string().max(200)).max(100),
})

export type Decision = z.output<typeof decisionSchema>

export interface PolicyVersion {
  name: string
  sha256: string
}

/** What came back from one policy: a result set as the engine gives it, or why there is none. */
export type PolicyResult = { policy: PolicyVersion } & ({ output: unknown } | { failure: string })

export const TIERS: readonly Tier[] = ['auto', 'auto_notify', 'approval_required', 'forbidden']

export const strictestTier = (tiers: readonly Tier[]): Tier =>
  TIERS[Math.max(0, ...tiers.map((tier) => TIERS.indexOf(tier)))] ?? 'forbidden'

const failed = (policy: PolicyVersion, why: string): Decision => ({
  version: 1,
  allow: false,
  deny: [
    {
      rule: 'policy-failed',
      severity: 'critical',
      message: `Policy "${policy.name}" gave no decision: ${why.slice(0, 500)}`,
      help: 'Nothing is committed without a decision. Run `puzzlectl policy eval` on this changeset.',
    },
  ],
  hold: [],
  warn: [],
  tier: 'forbidden',
  obligations: [],
})

/** The decision of one policy; whatever is not exactly one well-formed and coherent decision is a refusal. */
export function readDecision(result: PolicyResult): Decision {
  const { policy } = result
  if ('failure' in result) return failed(policy, result.failure)
  const { output } = result
  if (!Array.isArray(output)) return failed(policy, 'the result is no result set')
  // Undefined is how Rego says "no rule applied": an empty result set.
  if (output.length !== 1) return failed(policy, `the result set has ${output.length} entries, expected 1`)
  const checked = decisionSchema.safeParse((output[0] as { result?: unknown } | null)?.result)
  if (!checked.success) {
    const issue = checked.error.issues[0]
    return failed(
      policy,
      `malformed result at "${issue?.path.join('.') ?? ''}": ${issue?.message ?? 'unknown'}`,
    )
  }
  const decision = checked.data
  if (decision.allow !== (decision.deny.length === 0 && decision.hold.length === 0))
    return failed(policy, '"allow" contradicts "deny" and "hold"')
  return decision
}

/** Several policies are one: any deny denies, any hold holds, no policy at all denies. */
export function combineVerdict(
  results: readonly PolicyResult[],
  facts: { digest: string; durationMs: number; shadow: boolean },
): Verdict {
  const read = results.map((result) => ({ name: result.policy.name, decision: readDecision(result) }))
  const nobody = { name: 'none', decision: failed({ name: 'none', sha256: '' }, 'no policy is loaded') }
  const decisions = read.length === 0 ? [nobody] : read
  const gather = (list: 'deny' | 'hold' | 'warn'): Finding[] =>
    byRisk(decisions.flatMap(({ decision }) => decision[list].map(plainFinding)))
  const deny = gather('deny')
  const hold = gather('hold')
  const tier = strictestTier(decisions.map(({ decision }) => decision.tier))
  const kind = verdictKind(deny, hold, tier)
  return {
    kind,
    digest: facts.digest,
    tier: kind === 'deny' ? 'forbidden' : tier,
    deny,
    hold,
    warn: gather('warn'),
    obligations: [...new Set(decisions.flatMap(({ decision }) => decision.obligations))].sort(),
    policies: results.map(({ policy }) => policy),
    durationMs: facts.durationMs,
    shadow: facts.shadow,
  }
}

function verdictKind(deny: readonly Finding[], hold: readonly Finding[], tier: Tier): VerdictKind {
  if (deny.length > 0 || tier === 'forbidden') return 'deny'
  if (hold.length > 0 || tier === 'approval_required') return 'hold'
  return 'allow'
}

/** `exactOptionalPropertyTypes`: zod's optional keys may be present and undefined. */
function plainFinding({ rule, severity, message, path, help }: Decision['deny'][number]): Finding {
  return {
    rule,
    severity,
    message,
    ...(path === undefined ? {} : { path }),
    ...(help === undefined ? {} : { help }),
  }
}

const RISK: readonly Severity[] = ['critical', 'high', 'medium', 'low', 'info']

/** The reviewer reads from the top: what is worst stands first, and the order is the same every time. */
function byRisk(findings: Finding[]): Finding[] {
  const key = (each: Finding): string => `${RISK.indexOf(each.severity)} ${each.rule}\0${each.path ?? ''}`
  return findings
    .map((each) => ({ each, key: key(each) }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ each }) => each)
}

/** A verdict made stricter by findings from elsewhere (action policy, unreadable contents). Never milder. */
export function withFindings(
  verdict: Verdict,
  more: { deny?: readonly Finding[]; hold?: readonly Finding[]; warn?: readonly Finding[]; tier?: Tier },
): Verdict {
  const deny = byRisk([...verdict.deny, ...(more.deny ?? [])])
  const hold = byRisk([...verdict.hold, ...(more.hold ?? [])])
  const tier = strictestTier([
    verdict.tier,
    more.tier ?? 'auto',
    ...(deny.length > 0 ? (['forbidden'] as const) : []),
    ...(hold.length > 0 ? (['approval_required'] as const) : []),
  ])
  return {
    ...verdict,
    deny,
    hold,
    warn: byRisk([...verdict.warn, ...(more.warn ?? [])]),
    tier,
    kind: verdictKind(deny, hold, tier),
  }
}
