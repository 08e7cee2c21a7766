// pure
import { z } from 'zod'
import { encodePath } from '../contract/bytes.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { Finding, Tier } from '../contract/verdict.ts'
import { readDocument } from './document.ts'
import { anyPattern, bytes, count, oneOrMore, pathPattern, seconds, why } from './fields.ts'
import { fold } from './fold.ts'
import { globExpression } from './glob.ts'
import { checkDocument } from './schema-error.ts'
import { strictestTier } from './verdict.ts'
import { isOpen, type MaintenanceWindow, windowSchema } from './window.ts'

export const ACTION_POLICY_FORMAT = 'puzzled/action-policy/v1'

/** What a changeset can do: the kinds that rules speak of. */
export const ACTION_KINDS = ['add', 'modify', 'delete', 'metadata', 'replace', 'request'] as const
export type ActionKind = (typeof ACTION_KINDS)[number]

const tier = z.enum(['auto', 'auto_notify', 'approval_required', 'forbidden'])

const rateLimit = z.strictObject({
  commits: count.min(1, 'at least 1').describe('Commits that this rule matched, within the time.'),
  per: seconds,
})

const rule = z.strictObject({
  id: z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'a lower-case name of letters, digits and "-"'),
  kinds: oneOrMore(z.enum(ACTION_KINDS)).optional().describe('Default: every kind.'),
  targets: oneOrMore(anyPattern).describe('Globs: absolute paths, or "METHOD host/path" for requests.'),
  tier,
  limit: rateLimit.optional().describe('More than this needs a person.'),
  window: z
    .array(windowSchema)
    .min(1, 'at least one window')
    .optional()
    .describe('Outside of it a person is needed.'),
  quorum: count.min(1, 'at least 1').max(20, 'at most 20').optional(),
  otherReviewer: z.boolean().optional(),
  expires: seconds.optional(),
  why,
})

export const actionPolicySchema = z.strictObject({
  format: z.literal(ACTION_POLICY_FORMAT),
  default: tier.describe('For what no rule names.'),
  blastRadius: z
    .strictObject({
      files: count.optional(),
      bytes: bytes.optional(),
      deletions: count.optional(),
      directories: count.optional(),
      requests: count.optional(),
    })
    .optional()
    .describe('A changeset beyond this needs a person, whatever its tier.'),
  rules: z.array(rule).max(1_000, 'at most 1000 rules'),
  protect: z
    .array(z.strictObject({ path: oneOrMore(pathPattern), why }))
    .optional()
    .describe('Targets that nothing may touch.'),
})

export type ActionRule = z.output<typeof rule>
export type ActionPolicy = z.output<typeof actionPolicySchema>

export function parseActionPolicy(text: string, file: string): ActionPolicy {
  const document = readDocument(text, file, 'policy-invalid')
  return checkDocument(document, actionPolicySchema, 'policy-invalid', 'Cannot use action policy')
}

/** How often a rule was used: commits within its window of time, counted durably by `limits.ts`. */
export type UsedWithin = (rule: string, seconds: number) => number

export interface ActionJudgement {
  tier: Tier
  deny: Finding[]
  hold: Finding[]
  warn: Finding[]
  obligations: string[]
  /** Rules that took part; their use is counted when the changeset is committed. */
  used: string[]
}

interface Action {
  kind: ActionKind
  target: string
}

/** Judges what a changeset does. The first rule that names an action decides about it, as a reader expects. */
export function judgeActions(
  policy: ActionPolicy,
  changeset: Changeset,
  now: Date,
  usedWithin: UsedWithin,
): ActionJudgement {
  const matchers = policy.rules.map((each) => ({
    rule: each,
    kinds: new Set<ActionKind>(each.kinds ?? ACTION_KINDS),
    targets: each.targets.map((pattern) => globExpression(fold(pattern))),
  }))
  const matched = new Map<ActionRule, { count: number; first: string }>()
  const judgement: ActionJudgement = { tier: 'auto', deny: [], hold: [], warn: [], obligations: [], used: [] }
  let unnamed: string | undefined
  for (const { kind, target } of actionsOf(changeset)) {
    const folded = fold(target)
    const found = matchers.find(
      (each) => each.kinds.has(kind) && each.targets.some((glob) => glob.test(folded)),
    )
    if (found === undefined) unnamed ??= target
    else {
      const before = matched.get(found.rule)
      matched.set(found.rule, { count: (before?.count ?? 0) + 1, first: before?.first ?? target })
    }
  }
  if (unnamed !== undefined)
    addTier(judgement, policy.default, 'action/default', 'no rule of the action policy names it', unnamed)
  for (const [each, { count: hits, first }] of matched)
    applyRule(judgement, each, hits, first, now, usedWithin)
  for (const finding of [...protectedFindings(policy, changeset), ...radiusFindings(policy, changeset)])
    (finding.severity === 'critical' ? judgement.deny : judgement.hold).push(finding)
  if (judgement.hold.length > 0) judgement.tier = strictestTier([judgement.tier, 'approval_required'])
  if (judgement.deny.length > 0) judgement.tier = 'forbidden'
  return { ...judgement, obligations: [...new Set(judgement.obligations)].sort() }
}

function* actionsOf({ changes, bases, requests }: Changeset): Generator<Action> {
  for (const { kind, base, path } of changes) {
    const root = bases[base] ?? ''
    yield { kind, target: `${root === '/' ? '' : root}/${encodePath(path).path}` }
  }
  for (const { method, host, path } of requests) yield { kind: 'request', target: `${method} ${host}${path}` }
}

function addTier(judgement: ActionJudgement, wanted: Tier, id: string, message: string, path: string): void {
  judgement.tier = strictestTier([judgement.tier, wanted])
  if (wanted === 'forbidden') judgement.deny.push({ rule: id, severity: 'critical', message, path })
  else if (wanted === 'approval_required')
    judgement.hold.push({ rule: id, severity: 'medium', message, path })
  else if (wanted === 'auto_notify') judgement.warn.push({ rule: id, severity: 'low', message, path })
}

function applyRule(
  judgement: ActionJudgement,
  each: ActionRule,
  hits: number,
  first: string,
  now: Date,
  usedWithin: UsedWithin,
): void {
  const id = `action/${each.id}`
  const more = hits > 1 ? ` (and ${hits - 1} more)` : ''
  addTier(judgement, each.tier, id, `${each.why}${more}`, first)
  judgement.used.push(each.id)
  if (each.window !== undefined && !isOpen(each.window as readonly MaintenanceWindow[], now))
    judgement.hold.push({
      rule: `${id}/window`,
      severity: 'medium',
      message: 'outside of the maintenance windows',
      path: first,
    })
  if (each.limit !== undefined) {
    const used = usedWithin(each.id, each.limit.per)
    if (used >= each.limit.commits)
      judgement.hold.push({
        rule: `${id}/limit`,
        severity: 'medium',
        message: `${used} commits within ${each.limit.per} seconds; ${each.limit.commits} are allowed without a person`,
        path: first,
      })
  }
  if (each.quorum !== undefined) judgement.obligations.push(`quorum:${each.quorum}`)
  if (each.otherReviewer === true) judgement.obligations.push('other-reviewer')
  if (each.expires !== undefined) judgement.obligations.push(`expires:${each.expires}`)
}

function protectedFindings(policy: ActionPolicy, changeset: Changeset): Finding[] {
  const globs = (policy.protect ?? []).flatMap(({ path, why: reason }) =>
    path.map((each) => ({ expression: globExpression(fold(each)), reason })),
  )
  if (globs.length === 0) return []
  const found: Finding[] = []
  for (const { kind, target } of actionsOf(changeset)) {
    if (kind === 'request') continue
    const glob = globs.find(({ expression }) => expression.test(fold(target)))
    if (glob !== undefined)
      found.push({ rule: 'action/protect', severity: 'critical', message: glob.reason, path: target })
    if (found.length >= 50) break
  }
  return found
}

function radiusFindings({ blastRadius: radius }: ActionPolicy, changeset: Changeset): Finding[] {
  if (radius === undefined) return []
  const directories = new Set(
    changeset.changes.map(
      ({ base, path }) =>
        `${base} ${Buffer.from(path)
          .toString('latin1')
          .replace(/[^/]*$/, '')}`,
    ),
  )
  const { files, bytes: written, deletions } = changeset.totals
  const actual = {
    files,
    bytes: written,
    deletions,
    directories: directories.size,
    requests: changeset.requests.length,
  }
  return (Object.keys(actual) as (keyof typeof actual)[]).flatMap((key) => {
    const limit = radius[key]
    if (limit === undefined || actual[key] <= limit) return []
    const message = `${actual[key]} ${key}, more than the ${limit} that need no person`
    return [{ rule: 'action/blast-radius', severity: 'high' as const, message }]
  })
}
