// pure
import type { AuditRecord } from './record.ts'

/** One path of a commit, as it is on record. */
export interface PathEntry {
  path: string
  path64?: string
  kind: string
  sha256?: string
}

/** Who made a change real, from what, and who let it through. Null and empty: nothing is on record about it. */
export interface Provenance {
  commit: string
  time: string
  /** Record in which the commit was put on record: `puzzlectl audit prove` proves it. */
  seq: number
  /** `landed` when the log says that it was done; `decided` when a crash came in between and nothing was said since. */
  state: 'landed' | 'decided' | 'reverted'
  entries: readonly PathEntry[]
  branch: string
  name: string | null
  profile: string | null
  profileSha256: string | null
  requester: number | null
  command: readonly string[]
  exit: { code: number | null; signal: string | null; cause: string } | null
  digest: string
  verdict: string | null
  policies: readonly { name: string; sha256: string }[]
  approvals: readonly { by: number; why: string; time: string }[]
  requests: readonly string[]
}

/** A commit as somebody may hear of it who may not read the log. */
export interface ToldProvenance extends Provenance {
  /** It belongs to somebody else: what is told is that it was, and when. */
  withheld?: true
  /** Paths below the asked one that are left out. */
  more?: number
}

type Facts = Readonly<Record<string, unknown>>

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const number = (value: unknown): number | null => (typeof value === 'number' ? value : null)
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The entries of a record of paths; an entry that is not one is left out. */
export const entriesOf = (facts: Facts): PathEntry[] =>
  list(facts.paths).filter((entry): entry is PathEntry => {
    const { path, kind } = (entry ?? {}) as Partial<PathEntry>
    return typeof path === 'string' && typeof kind === 'string'
  })

/**
 * Tells the story of one commit from everything on record about its branch, in the order of the log. What came after the
 * commit belongs to another one, except for what became of this one.
 */
export function provenanceOf(
  commit: string,
  entries: readonly PathEntry[],
  records: readonly AuditRecord[],
): Provenance | null {
  const at = records.findIndex(({ kind, facts }) => kind === 'commit' && facts.commit === commit)
  const decided = records[at]
  if (decided === undefined) return null
  const before = records.slice(0, at)
  const last = (kind: string): AuditRecord | undefined => before.findLast((record) => record.kind === kind)
  const digest = text(decided.facts.digest) ?? ''
  const fork = last('fork')?.facts ?? {}
  const verdict = last('verdict')?.facts ?? {}
  return {
    commit,
    time: decided.time,
    seq: decided.seq,
    state: stateOf(commit, records.slice(at)),
    entries,
    branch: decided.branch,
    name: text(fork.name),
    profile: text(fork.profile),
    profileSha256: text(fork.profileSha256),
    requester: number(fork.requester),
    command: list(fork.command).map(String),
    exit: exitOf(last('exit')?.facts),
    digest,
    verdict: text(verdict.verdict),
    policies: list(verdict.policies) as Provenance['policies'],
    approvals: before
      .filter(({ kind, facts }) => kind === 'approve' && facts.digest === digest)
      .map(({ facts, time }) => ({ by: number(facts.by) ?? -1, why: text(facts.why) ?? '', time })),
    requests: list(decided.facts.requests).map(String),
  }
}

function stateOf(commit: string, after: readonly AuditRecord[]): Provenance['state'] {
  if (after.some(({ kind, branch }) => kind === 'reverted' && branch === commit)) return 'reverted'
  const landed = after.some(
    ({ kind, facts }) =>
      (kind === 'committed' && facts.commit === commit) || (kind === 'recovered' && facts.landed === true),
  )
  return landed ? 'landed' : 'decided'
}

function exitOf(facts: Facts | undefined): Provenance['exit'] {
  if (facts === undefined) return null
  return { code: number(facts.code), signal: text(facts.signal), cause: text(facts.cause) ?? '' }
}
