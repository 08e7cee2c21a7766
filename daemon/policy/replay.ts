import type { Verdict, VerdictKind } from '../contract/verdict.ts'
import type { DecisionLine, DecisionLog } from './decision-log.ts'

export interface Replayed {
  at: string
  branch: string
  digest: string
  was: VerdictKind
  /** Null when the input document is gone. */
  now: VerdictKind | null
  /** Rules that are found now and were not, and the reverse. */
  appeared: readonly string[]
  vanished: readonly string[]
}

type Evaluate = (input: Uint8Array, facts: { digest: string; shadow: boolean }) => Promise<Verdict>

/** Evaluates the policies that are loaded now on what was decided since then; one row per decision. */
export async function* replay(log: DecisionLog, since: Date, evaluate: Evaluate): AsyncGenerator<Replayed> {
  for (const line of await log.since(since)) {
    const input = line.input === null ? null : await log.input(line.input)
    if (input === null) yield { ...head(line), now: null, appeared: [], vanished: [] }
    else yield { ...head(line), ...compare(line, await evaluate(input, line)) }
  }
}

const head = ({ at, branch, digest, verdict }: DecisionLine) => ({ at, branch, digest, was: verdict })

function compare(line: DecisionLine, verdict: Verdict): Pick<Replayed, 'now' | 'appeared' | 'vanished'> {
  const before = new Set(line.findings.map(({ rule }) => rule))
  const after = new Set([...verdict.deny, ...verdict.hold, ...verdict.warn].map(({ rule }) => rule))
  return {
    now: verdict.kind,
    appeared: [...after].filter((rule) => !before.has(rule)).sort(),
    // What the action policy found is not evaluated again: its limits and windows were of that hour.
    vanished: [...before].filter((rule) => !after.has(rule) && !rule.startsWith('action/')).sort(),
  }
}
