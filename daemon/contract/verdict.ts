// pure

export type VerdictKind = 'allow' | 'hold' | 'deny'
export type Tier = 'auto' | 'auto_notify' | 'approval_required' | 'forbidden'
export type Severity = 'info' | 'low' | 'medium' | 'high' | 'critical'

export interface Finding {
  rule: string
  severity: Severity
  message: string
  path?: string
  help?: string
}

/** What the gate says about exactly one changeset digest. */
export interface Verdict {
  kind: VerdictKind
  digest: string
  tier: Tier
  deny: readonly Finding[]
  hold: readonly Finding[]
  warn: readonly Finding[]
  obligations: readonly string[]
  /** Name and SHA-256 of every policy that took part. */
  policies: readonly { name: string; sha256: string }[]
  durationMs: number
  /** True when the profile says `enforce: shadow`: evaluated and recorded, not enforced. */
  shadow: boolean
}
