import type { BranchRecord } from '../contract/branch.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import type { Verdict } from '../contract/verdict.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { ContentScan } from './content-scan.ts'
import { type ContentReader, scanContents } from './contents.ts'
import { EMPTY_INPUT } from './empty-input.ts'
import { type GateContext, GateInputBuilder, MAX_CHANGES } from './gate-input.ts'
import type { LoadedPolicy } from './gate-messages.ts'
import { GatePool, POOL_LIMITS, type PoolLimits, type RawResult } from './gate-pool.ts'
import { loadPolicies, type PolicySource } from './policy-set.ts'
import { combineVerdict, type PolicyResult, readDecision } from './verdict.ts'

/** Everything about one decision, for the log: `input` is the document exactly as the policies saw it. */
export interface GateDecision {
  branch: string
  at: string
  verdict: Verdict
  input: Uint8Array | null
}

export interface GateOptions {
  sources: () => Promise<readonly PolicySource[]>
  /** Reads new (and old) contents; `null` where there are none, as for a changeset from a file. */
  contents: ContentReader | null
  limits?: Partial<PoolLimits>
  now?: () => Date
  /** What other parts know: budget use, what the branch did before. */
  context?: (record: BranchRecord) => Promise<Pick<GateContext, 'usage' | 'history'>>
  /** Judges what the policies said further (the action policy). It can only add. */
  judge?: (verdict: Verdict, record: BranchRecord, changeset: Changeset) => Promise<Verdict>
  /** Must be durable before it resolves; a decision that cannot be recorded is a refusal. */
  record?: (decision: GateDecision) => Promise<void>
}

/** A set of policies that works and decides nothing yet. */
export interface Prepared {
  apply(): Promise<readonly { name: string; sha256: string }[]>
  abandon(): Promise<void>
}

/** A set stays until the last evaluation that began with it has ended, also when a newer one is in force. */
interface LoadedSet {
  policies: readonly LoadedPolicy[]
  pool: GatePool
  users: number
  retired: boolean
}

/** How many changes are turned into text before other work gets its turn. */
const SLICE = 500

/**
 * Judges changesets. Evaluation happens in processes without rights, under limits of time and memory; whatever goes wrong, in
 * any way, is a verdict of `deny` that says what went wrong. `evaluate` does not throw.
 */
export class PolicyGate {
  readonly #options: GateOptions
  readonly #limits: PoolLimits
  readonly #now: () => Date
  #set: Promise<LoadedSet> | null = null

  constructor(options: GateOptions) {
    this.#options = options
    this.#limits = { ...POOL_LIMITS, ...options.limits }
    this.#now = options.now ?? (() => new Date())
  }

  /** Loads the policies now instead of with the first changeset; throws `policy-invalid`. */
  async warm(): Promise<readonly { name: string; sha256: string }[]> {
    const { policies } = await this.#loaded()
    return policies.map(({ name, sha256 }) => ({ name, sha256 }))
  }

  /**
   * Replaces the whole set, or nothing: the new one is read, compiled, instantiated and tried before it decides
   * anything. On an error the old set stays in force and the error is thrown.
   */
  async reload(): Promise<readonly { name: string; sha256: string }[]> {
    return (await this.prepare()).apply()
  }

  /** The same in two steps, for a reload that has more to try: nothing is in force before `apply`. */
  async prepare(): Promise<Prepared> {
    const next = await this.#load()
    return {
      apply: async () => {
        const before = this.#set
        this.#set = Promise.resolve(next)
        const old = await before?.catch(() => null)
        if (old) await retire(old)
        return next.policies.map(({ name, sha256 }) => ({ name, sha256 }))
      },
      abandon: () => next.pool.close(),
    }
  }

  async evaluate(record: BranchRecord, changeset: Changeset): Promise<Verdict> {
    const started = performance.now()
    const facts = () => ({
      digest: changeset.digest,
      durationMs: performance.now() - started,
      shadow: record.profile.resolved.enforce === 'shadow',
    })
    let results: readonly PolicyResult[]
    let input: Uint8Array | null = null
    try {
      results = await this.#withSet(async ({ policies, pool }) => {
        const document = await this.#input(record, changeset, pool)
        // The document moves to the worker; only who records it needs a copy.
        if (this.#options.record) input = new Uint8Array(document.slice(0))
        return [
          ...named(policies, await pool.evaluate(document, ownerOf(record))),
          ...missing(record, policies),
        ]
      })
    } catch (error) {
      results = [{ policy: { name: 'gate', sha256: '' }, failure: describe(error) }]
    }
    try {
      let verdict = combineVerdict(results, facts())
      if (this.#options.judge) verdict = await this.#options.judge(verdict, record, changeset)
      await this.#options.record?.({ branch: record.id, at: this.#now().toISOString(), verdict, input })
      return verdict
    } catch (error) {
      return combineVerdict([{ policy: { name: 'gate', sha256: '' }, failure: describe(error) }], facts())
    }
  }

  /** Evaluates an input document as it was recorded; for `policy replay` and `policy eval`. */
  async evaluateInput(input: Uint8Array, facts: { digest: string; shadow: boolean }): Promise<Verdict> {
    const started = performance.now()
    const results = await this.#withSet(async ({ policies, pool }) =>
      named(policies, await pool.evaluate(new Uint8Array(input).buffer)),
    )
    return combineVerdict(results, { ...facts, durationMs: performance.now() - started })
  }

  async close(): Promise<void> {
    const set = await this.#set?.catch(() => null)
    this.#set = null
    await set?.pool.close()
  }

  async #withSet<Result>(work: (set: LoadedSet) => Promise<Result>): Promise<Result> {
    let set = await this.#loaded()
    // Between the answer and now a reload may have closed the set.
    while (set.retired) set = await this.#loaded()
    set.users++
    try {
      return await work(set)
    } finally {
      set.users--
      if (set.retired) await retire(set)
    }
  }

  async #loaded(): Promise<LoadedSet> {
    this.#set ??= this.#load()
    try {
      return await this.#set
    } catch (error) {
      // The next evaluation looks again: the operator may have mended the file.
      this.#set = null
      throw error
    }
  }

  async #load(): Promise<LoadedSet> {
    const policies = await loadPolicies(await this.#options.sources())
    if (policies.length === 0) throw new PuzzledError('policy-invalid', 'No policy is installed')
    const pool = await GatePool.start(policies, this.#limits).catch((error: unknown) => {
      // What the worker said is all that is known: a cause would say it twice.
      throw new PuzzledError('policy-invalid', `Cannot load the policies: ${describe(error)}`)
    })
    try {
      await tryOut(policies, pool)
    } catch (error) {
      await pool.close()
      throw error
    }
    return { policies, pool, users: 0, retired: false }
  }

  async #input(record: BranchRecord, changeset: Changeset, pool: GatePool): Promise<ArrayBuffer> {
    if (changeset.changes.length > MAX_CHANGES)
      throw new PuzzledError(
        'too-large',
        `${changeset.changes.length} changes, at most ${MAX_CHANGES} are judged`,
      )
    const scans = await this.#scans(record, changeset, pool)
    const more = await this.#options.context?.(record)
    const builder = new GateInputBuilder(record, changeset, { now: this.#now(), scans, ...more })
    while (builder.take(SLICE)) await new Promise((resolve) => setImmediate(resolve))
    return builder.finish()
  }

  async #scans(
    record: BranchRecord,
    changeset: Changeset,
    pool: GatePool,
  ): Promise<ReadonlyMap<number, ContentScan> | null> {
    const { contents } = this.#options
    if (contents === null) return null
    return scanContents(
      changeset,
      (change: Change, which, limit) => contents(record, change, which, limit),
      (items) => pool.scan(items, ownerOf(record)),
    )
  }
}

async function retire(set: LoadedSet): Promise<void> {
  set.retired = true
  if (set.users === 0) await set.pool.close()
}

/** Branches of one person share what is theirs of the threads. */
const ownerOf = ({ requester }: BranchRecord): string => String(requester.uid)

const encode = (text: string): ArrayBuffer => {
  const bytes = new TextEncoder().encode(text)
  return bytes.buffer as ArrayBuffer
}

const named = (policies: readonly LoadedPolicy[], results: readonly RawResult[]): PolicyResult[] =>
  results.map((result, index) => {
    const { name, sha256 } = policies[index] ?? { name: 'unknown', sha256: '' }
    return { policy: { name, sha256 }, ...result }
  })

/** A policy that the profile asks for and nobody installed is a refusal, not an absence. */
const missing = (record: BranchRecord, policies: readonly LoadedPolicy[]): PolicyResult[] =>
  record.profile.resolved.gate.policies
    .filter((name) => !policies.some((policy) => policy.name === name))
    .map((name) => ({
      policy: { name, sha256: '' },
      failure: 'the profile asks for it and it is not installed',
    }))

/** A set must answer an empty changeset with a decision before it may answer a real one. */
async function tryOut(policies: readonly LoadedPolicy[], pool: GatePool): Promise<void> {
  const answers = await pool.evaluate(encode(EMPTY_INPUT)).catch((error: unknown) => {
    throw new PuzzledError('policy-invalid', `The policies do not answer: ${describe(error)}`, {
      cause: error,
    })
  })
  const results = named(policies, answers)
  for (const result of results) {
    const refused = readDecision(result).deny.find(({ rule }) => rule === 'policy-failed')
    if (refused !== undefined) throw new PuzzledError('policy-invalid', refused.message)
  }
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error))
