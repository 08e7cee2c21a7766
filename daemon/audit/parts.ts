import type { KeyObject } from 'node:crypto'
import { cutSince, type Findings, type KeptHead, LogCheck, type Verification } from './check.ts'
import { linesOf } from './segments.ts'
import { verifiesHead } from './signer.ts'
import type { Tip } from './tip.ts'
import { LogWalk, type WalkState } from './walk.ts'

/** What a verification is about. Nothing of it changes while it runs. */
export interface Question {
  directory: string
  segments: readonly number[]
  tip: Tip | null
  kept: KeptHead | null
}

/** One segment whose lines fit each other and the head that it begins with. */
export interface Part {
  /** What the segments before it must have come to. Null for a log that is there from its first record. */
  begin: WalkState | null
  end: WalkState
  root: string
  heads: number
  signed: number
  findings: Findings
}

/** Null where anything is wrong, or where the segment cannot be judged by itself. */
export async function checkPart(question: Question, key: KeyObject, segment: number): Promise<Part | null> {
  const { directory, segments, tip, kept } = question
  const walk = new LogWalk(key, verifiesHead, segment > 1)
  const check = new LogCheck(walk, segments, tip, kept)
  check.begin(segment)
  for await (const lines of linesOf(directory, segment))
    for (const line of lines) if (check.take(line)) return null
  if (!check.fits() || (segment > 1 && walk.begin === null)) return null
  const { begin, state: end, heads, signed } = walk
  const root = walk.chain.tree.root().toString('hex')
  return { begin, end, root, heads, signed, findings: check.findings() }
}

/**
 * What reading all of it in order would have said: each part begins exactly where the one before it ended, so that every
 * line met the state that it would have met. Null where that is not so, or where anything is missing at the end.
 */
export function joined(parts: readonly (Part | null)[], question: Question): Verification | null {
  const { segments, tip, kept } = question
  let before: Part | null = null
  let [heads, archived, grew] = [0, 0, kept === null]
  for (const part of parts) {
    if (part === null || (before !== null && !isSame(before.end, part.begin))) return null
    heads += part.heads
    archived = Math.max(archived, part.findings.archived)
    grew ||= part.findings.grew
    before = part
  }
  if (before === null || !grew || archived < (segments[0] ?? 1) - 1) return null
  const { end, root, signed, findings } = before
  if (cutSince(end, tip) !== null) return null
  return { records: end.next, heads, signed, root, bad: null, torn: findings.torn }
}

const isSame = (end: WalkState, begin: WalkState | null): boolean =>
  end.next === begin?.next && end.prev === begin.prev && String(end.edge) === String(begin.edge)
