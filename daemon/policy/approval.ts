// pure
import { z } from 'zod'
import type { Approver, Requester } from '../contract/branch.ts'
import { PuzzledError } from '../lib/errors.ts'

/** Under which terms a held changeset may be approved. Policies say them as obligations. */
export interface ApprovalTerms {
  /** How many different people must approve. */
  quorum: number
  /** Whether the one who started the branch counts. */
  otherReviewer: boolean
  /** Seconds from the request; nobody's answer is a refusal. */
  expires: number
}

export const DEFAULT_TERMS: ApprovalTerms = { quorum: 1, otherReviewer: false, expires: 7 * 24 * 3600 }

const decision = z.strictObject({
  decision: z.enum(['approve', 'reject']),
  by: z.int().min(0),
  name: z.string(),
  why: z.string(),
  at: z.iso.datetime(),
})

export const approvalSchema = z.strictObject({
  version: z.literal(1),
  id: z.string().regex(/^a[2-9a-z]{11}$/),
  branch: z.string(),
  /** Digest of the changeset: exactly this and nothing else. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  /** Version of the set of policies whose findings the reviewer saw. */
  policyVersion: z.string().regex(/^[0-9a-f]{64}$/),
  requester: z.int().min(0),
  terms: z.strictObject({ quorum: z.int().min(1), otherReviewer: z.boolean(), expires: z.int().min(1) }),
  requestedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  decisions: z.array(decision),
  /** Set once, by the commit that used the approval up. */
  consumed: z.strictObject({ commit: z.string(), at: z.iso.datetime() }).nullable(),
})

export type Approval = z.output<typeof approvalSchema>

/**
 * Terms out of obligations: `quorum:2`, `other-reviewer`, `expires:3600`. Of several the strictest counts; a number
 * that cannot be read is refused, because ignoring it would ask for less than was meant.
 */
export function termsOf(obligations: readonly string[]): ApprovalTerms {
  const terms = { ...DEFAULT_TERMS }
  for (const obligation of obligations) {
    if (obligation === 'other-reviewer') terms.otherReviewer = true
    const [, key, words = ''] = /^(quorum|expires):(.*)$/.exec(obligation) ?? []
    if (key === undefined) continue
    if (!/^[1-9]\d{0,8}$/.test(words))
      throw new PuzzledError(
        'policy-failed',
        `Obligation ${JSON.stringify(obligation)}: expected a positive number`,
      )
    if (key === 'quorum') terms.quorum = Math.max(terms.quorum, Number(words))
    else terms.expires = Math.min(terms.expires, Number(words))
  }
  return terms
}

const refuse = (approval: Approval, why: string, hint?: string): never => {
  throw new PuzzledError(
    'approval-invalid',
    `The approval of branch ${approval.branch} does not count: ${why}`,
    {
      data: { approval: approval.id, digest: approval.digest },
      ...(hint === undefined ? {} : { hint }),
    },
  )
}

const isExpired = (approval: Approval, now: Date): boolean => now.getTime() >= Date.parse(approval.expiresAt)

/** Whether a request still stands, so that it need not be made anew. */
export const stands = (approval: Approval, policyVersion: string, now: Date): boolean =>
  approval.policyVersion === policyVersion && approval.consumed === null && !isExpired(approval, now)

/** Everybody whose approval counts, once, in the order in which they gave it. */
export function approversOf(approval: Approval): readonly Approver[] {
  const approvers = new Map<number, Approver>()
  for (const { decision: kind, by: uid, name } of approval.decisions)
    if (kind === 'approve' && mayDecide(approval, uid) && !approvers.has(uid))
      approvers.set(uid, { uid, name })
  return [...approvers.values()]
}

/** How many different people have approved; one rejection outweighs them all. */
export function progress(approval: Approval): { approved: number; missing: number; rejected: boolean } {
  const approved = approversOf(approval).length
  return {
    approved,
    missing: Math.max(0, approval.terms.quorum - approved),
    rejected: approval.decisions.some(({ decision: kind }) => kind === 'reject'),
  }
}

const mayDecide = ({ terms, requester }: Approval, uid: number): boolean =>
  !terms.otherReviewer || uid !== requester

/** Adds one person's decision. The requester may always refuse their own changes. */
export function decide(
  approval: Approval,
  kind: 'approve' | 'reject',
  by: Pick<Requester, 'uid' | 'name'>,
  why: string,
  now: Date,
): Approval {
  if (approval.consumed !== null)
    refuse(
      approval,
      `commit ${approval.consumed.commit} has used it, whether it landed or not`,
      `Have the branch judged again: puzzlectl review ${approval.branch}`,
    )
  if (isExpired(approval, now))
    refuse(approval, `the request expired at ${approval.expiresAt}`, 'Have the branch judged again.')
  if (kind === 'approve' && progress(approval).rejected)
    refuse(approval, 'somebody has rejected the same changes')
  if (kind === 'approve' && !mayDecide(approval, by.uid))
    throw new PuzzledError('access-denied', `Uid ${by.uid} started this branch and may not approve it`, {
      hint: 'The policy asks for another person.',
    })
  const entry = { decision: kind, by: by.uid, name: by.name, why, at: now.toISOString() }
  return { ...approval, decisions: [...approval.decisions, entry] }
}

/** Throws unless the approval covers exactly this and may be used now. */
export function demandValid(
  approval: Approval,
  asked: { digest: string; policyVersion: string; branch: string },
  now: Date,
): void {
  const { missing, rejected } = progress(approval)
  if (approval.branch !== asked.branch) refuse(approval, 'it is for another branch')
  if (approval.digest !== asked.digest) refuse(approval, 'the changes are not those that were reviewed')
  if (approval.policyVersion !== asked.policyVersion)
    refuse(
      approval,
      'the policy changed after the review',
      'Have the branch judged again and look at the new findings.',
    )
  if (approval.consumed !== null) refuse(approval, `commit ${approval.consumed.commit} has used it`)
  if (rejected) refuse(approval, 'somebody has rejected it')
  if (missing > 0) refuse(approval, `${missing} more approval(s) are needed`)
  if (isExpired(approval, now))
    refuse(approval, `it expired at ${approval.expiresAt}`, 'Have the branch judged again.')
}

/** Uses the approval up. The commit that has used it may say so again: it may have died in between. */
export function consume(approval: Approval, commit: string, now: Date): Approval {
  if (approval.consumed?.commit === commit) return approval
  if (approval.consumed !== null) refuse(approval, `commit ${approval.consumed.commit} has used it`)
  const { missing, rejected } = progress(approval)
  if (rejected) refuse(approval, 'somebody has rejected it')
  if (missing > 0) refuse(approval, `${missing} more approval(s) are needed`)
  if (isExpired(approval, now)) refuse(approval, `it expired at ${approval.expiresAt}`)
  return { ...approval, consumed: { commit, at: now.toISOString() } }
}
