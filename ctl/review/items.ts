// pure
import { Buffer } from 'node:buffer'
import { exactPattern, showBytes } from '../../daemon/contract/bytes.ts'
import { type Change, type Changeset, isEcho } from '../../daemon/contract/changeset.ts'
import { type FilePart, findingsOf, type Selection } from '../../daemon/contract/engine.ts'
import type { Finding, Verdict } from '../../daemon/contract/verdict.ts'

/** One question of a review. */
export interface ReviewItem {
  change: Change
  findings: readonly Finding[]
  /** So many changes below a directory go with it. */
  below: number
}

const SEVERITIES: readonly Finding['severity'][] = ['critical', 'high', 'medium', 'low', 'info']

/**
 * What a person is asked about: what was found first, the worst of it at the top, then everything else in the order of
 * the changeset. A directory that is made comes with what is in it, and what is in one that goes, goes: neither is asked
 * for by itself.
 */
export function reviewItems(changeset: Changeset, verdict: Verdict | null): readonly ReviewItem[] {
  const findings = verdict === null ? [] : findingsOf(verdict)
  const gone: Change[] = []
  const items: ReviewItem[] = []
  for (const change of changeset.changes) {
    if (isEcho(change) || gone.some((above) => isBelow(change, above))) continue
    if (change.old?.type === 'dir' && change.new?.type !== 'dir') gone.push(change)
    if (change.kind === 'add' && change.new?.type === 'dir' && hasBelow(changeset, change)) continue
    const here = findings.filter(
      ({ path }) => path !== undefined && namesOf(changeset, change).includes(path),
    )
    const below = changeset.changes.filter((other) => gone.includes(change) && isBelow(other, change)).length
    items.push({ change, findings: here, below })
  }
  return items
    .map((item, index) => ({ item, index, rank: rankOf(item) }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index)
    .map(({ item }) => item)
}

const rankOf = ({ change, findings }: ReviewItem): number =>
  change.findings.length > 0
    ? -1
    : Math.min(SEVERITIES.length, ...findings.map(({ severity }) => SEVERITIES.indexOf(severity)))

/** Findings name a path as the policy saw it: below its base, or absolute. */
function namesOf({ bases }: Changeset, { base, path }: Change): readonly string[] {
  const shown = showBytes(Buffer.from(path))
  return [shown, `${bases[base] ?? ''}/${shown}`]
}

const isBelow = (change: Change, above: Change): boolean =>
  change.base === above.base &&
  change.path.length > above.path.length &&
  Buffer.compare(
    Buffer.from(change.path.subarray(0, above.path.length + 1)),
    Buffer.concat([above.path, Buffer.from('/')]),
  ) === 0

const hasBelow = ({ changes }: Changeset, directory: Change): boolean =>
  changes.some((change) => isBelow(change, directory))

export interface ReviewChoice {
  /** Files of which only pieces are taken are among them. */
  taken: readonly Change[]
  left: readonly Change[]
  parts: readonly FilePart[]
}

/** Null when everything is taken: then the branch is approved as a whole, directories and times included. */
export function selectionOfChoice(
  changeset: Changeset,
  { taken, left }: Pick<ReviewChoice, 'taken' | 'left'>,
): Selection | null {
  if (left.length === 0) return null
  return {
    only: taken.map(({ base, path }) => exactPattern(changeset.bases[base] ?? '', path)),
    except: [],
  }
}
