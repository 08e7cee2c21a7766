import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { BranchRecord } from '../contract/branch.ts'
import type { Changeset } from '../contract/changeset.ts'
import type { Verdict } from '../contract/verdict.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { type ActionPolicy, judgeActions, parseActionPolicy } from './action-policy.ts'
import type { LimitLedger } from './limits.ts'
import { withFindings } from './verdict.ts'

export const ACTION_POLICY_FILE = '/etc/puzzled/actions.yaml'

/**
 * The action policy in front of a ledger. Without a file there is no action policy, and the verdict is the policies'
 * own; with a file that cannot be used every judgement fails, which the gate takes as deny.
 */
export class ActionJudge {
  readonly #file: string
  readonly #ledger: LimitLedger
  readonly #now: () => Date
  #loaded: { policy: ActionPolicy; sha256: string } | null = null
  #state: 'unread' | 'absent' | 'loaded' = 'unread'

  constructor(file: string, ledger: LimitLedger, now: () => Date) {
    this.#file = file
    this.#ledger = ledger
    this.#now = now
  }

  /** Reads the file anew. On an error what was in force stays in force, and the error is thrown. */
  async reload(): Promise<void> {
    const apply = await this.prepare()
    apply()
  }

  /** The same in two steps: nothing is in force before what is returned is called. */
  async prepare(): Promise<() => void> {
    let text: string
    try {
      text = await readFile(this.#file, 'utf8')
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT')
        throw new PuzzledError(
          'policy-invalid',
          `Cannot read "${this.#file}": ${errnoOf(error) ?? 'unknown error'}`,
          {
            cause: error,
          },
        )
      return () => {
        this.#loaded = null
        this.#state = 'absent'
      }
    }
    const policy = parseActionPolicy(text, this.#file)
    const sha256 = createHash('sha256').update(text).digest('hex')
    return () => {
      this.#loaded = { policy, sha256 }
      this.#state = 'loaded'
    }
  }

  /** For the gate's `judge`. The file's digest takes part in the policy version: a changed file voids approvals. */
  async judge(verdict: Verdict, _record: BranchRecord, changeset: Changeset): Promise<Verdict> {
    const judgement = await this.#judgement(changeset)
    if (judgement === null || this.#loaded === null) return verdict
    const stricter = withFindings(verdict, judgement)
    return {
      ...stricter,
      obligations: [...new Set([...stricter.obligations, ...judgement.obligations])].sort(),
      policies: [...stricter.policies, { name: 'actions', sha256: this.#loaded.sha256 }],
    }
  }

  /** Counts the use of limits; to be called before the commit's INTENT becomes durable. Idempotent per commit. */
  async consume(changeset: Changeset, commit: string): Promise<void> {
    const judgement = await this.#judgement(changeset)
    if (judgement !== null) await this.#ledger.count(judgement.used, commit)
  }

  async #judgement(changeset: Changeset) {
    if (this.#state === 'unread') await this.reload()
    if (this.#loaded === null) return null
    return judgeActions(this.#loaded.policy, changeset, this.#now(), await this.#ledger.read())
  }
}
