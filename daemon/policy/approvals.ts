import { join } from 'node:path'
import type { Approver, BranchRecord, Requester } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { Verdict } from '../contract/verdict.ts'
import { PuzzledError } from '../lib/errors.ts'
import { newApprovalId } from '../lib/ids.ts'
import { KeyLock } from '../lib/key-lock.ts'
import {
  type Approval,
  approvalSchema,
  approversOf,
  consume,
  decide,
  demandValid,
  progress,
  stands,
  termsOf,
} from './approval.ts'
import { policyVersion } from './policy-set.ts'
import type { RecordFiles } from './record-files.ts'

/**
 * Decisions of people about held changesets: one small file each, written durably before anybody hears of it. An
 * approval is bound to one branch, one digest and one version of the policies; it is used once.
 */
export class ApprovalStore {
  readonly #files: RecordFiles
  readonly #directory: string
  readonly #now: () => Date
  readonly #lock = new KeyLock<'all'>()

  /** `directory` exists and belongs to the store: nobody else can write it. */
  constructor(files: RecordFiles, directory: string, now: () => Date) {
    this.#files = files
    this.#directory = directory
    this.#now = now
  }

  /** Records that this digest waits for a person. A request that still stands keeps the decisions that it has. */
  async request(record: BranchRecord, changeset: Changeset, verdict: Verdict): Promise<void> {
    await this.#lock.run('all', () => this.#request(record, changeset.digest, verdict))
  }

  /** Records one decision. Throws `access-denied` (the reviewer is the requester) or `approval-invalid`. */
  async decide(
    record: BranchRecord,
    digest: string,
    decision: 'approve' | 'reject',
    by: Requester,
    why: string,
  ): Promise<{ complete: boolean; missing: number }> {
    return this.#lock.run('all', async () => {
      // A part of what was judged has no request of its own yet: it gets the terms of the whole.
      const known = (await this.#find(record.id, digest)) ?? (await this.#partial(record, digest))
      const next = decide(known, decision, by, why, this.#now())
      await this.#write(next)
      const { missing, rejected } = progress(next)
      return { complete: missing === 0 && !rejected, missing }
    })
  }

  /** A complete approval for exactly this, and whose it is; throws `approval-invalid` with the reason. */
  async check(
    record: BranchRecord,
    digest: string,
    policies: Verdict['policies'],
  ): Promise<{ id: string; by: readonly Approver[] }> {
    const approval = await this.#find(record.id, digest)
    if (approval === null)
      throw new PuzzledError('approval-invalid', `Nobody has approved these changes of branch ${record.id}`, {
        hint: `puzzlectl approve ${record.id}`,
        data: { digest },
      })
    const asked = { branch: record.id, digest, policyVersion: policyVersion(policies) }
    demandValid(approval, asked, this.#now())
    return { id: approval.id, by: approversOf(approval) }
  }

  /** Uses the approval up, durably; the same commit may call it again after a crash. */
  async consume(id: string, commit: string): Promise<void> {
    await this.#lock.run('all', async () => {
      const approval = await this.#withId(id)
      const used = consume(approval, commit, this.#now())
      if (used !== approval) await this.#write(used)
    })
  }

  /** Every request, newest first. A damaged record is an error: it may be a rejection. */
  async list(): Promise<Approval[]> {
    const names = (await this.#files.list(this.#directory)).filter((name) => name.endsWith('.json'))
    const all = await Promise.all(names.map((name) => this.#read(name)))
    return all
      .filter((approval) => approval !== null)
      .sort((a, b) => (a.requestedAt < b.requestedAt ? 1 : -1))
  }

  /** A record of another branch that is damaged is no reason to refuse; one that might be this one is. */
  async #withId(id: string): Promise<Approval> {
    let damage: unknown
    for (const name of await this.#files.list(this.#directory)) {
      if (!name.endsWith('.json')) continue
      try {
        const approval = await this.#read(name)
        if (approval?.id === id) return approval
      } catch (error) {
        damage ??= error
      }
    }
    throw damage ?? new PuzzledError('approval-invalid', `There is no approval ${id}`)
  }

  async #request(record: BranchRecord, digest: string, verdict: Verdict): Promise<Approval> {
    const version = policyVersion(verdict.policies)
    const known = await this.#find(record.id, digest)
    const now = this.#now()
    if (known !== null && stands(known, version, now)) return known
    const terms = termsOf(verdict.obligations)
    const approval: Approval = {
      version: 1,
      id: newApprovalId(),
      branch: record.id,
      digest,
      policyVersion: version,
      requester: record.requester.uid,
      terms,
      requestedAt: now.toISOString(),
      expiresAt: new Date(now.getTime() + terms.expires * 1000).toISOString(),
      decisions: [],
      consumed: null,
    }
    await this.#write(approval)
    return approval
  }

  async #partial(record: BranchRecord, digest: string): Promise<Approval> {
    if (record.verdict === null)
      throw new PuzzledError('approval-invalid', `Branch ${record.id} was not judged yet`, {
        hint: `puzzlectl review ${record.id}`,
      })
    return this.#request(record, digest, record.verdict)
  }

  /** One file per branch and digest: there cannot be two answers to one question. */
  #name(branch: string, digest: string): string {
    return `${branch}-${digest}.json`
  }

  #find(branch: string, digest: string): Promise<Approval | null> {
    return this.#read(this.#name(branch, digest))
  }

  async #read(name: string): Promise<Approval | null> {
    const path = join(this.#directory, name)
    const bytes = await this.#files.read(path)
    if (bytes === null) return null
    const damaged = (cause: unknown): never => {
      throw new PuzzledError('record-damaged', `Approval record "${path}" cannot be understood`, {
        cause,
        hint: 'It was left as it is; nothing is approved by it.',
      })
    }
    try {
      const approval = approvalSchema.parse(JSON.parse(bytes.toString('utf8')))
      if (this.#name(approval.branch, approval.digest) === name) return approval
    } catch (error) {
      damaged(error)
    }
    return damaged(new Error('the record is about something else than its name says'))
  }

  async #write(approval: Approval): Promise<void> {
    const path = join(this.#directory, this.#name(approval.branch, approval.digest))
    await this.#files.writeRecord(path, Buffer.from(`${JSON.stringify(approval, null, 2)}\n`))
  }
}
