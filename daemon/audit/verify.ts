import type { KeyObject } from 'node:crypto'
import { linesOf, listSegments, segmentName } from './segments.ts'
import { verifiesHead } from './signer.ts'
import { type Tip, TipFile } from './tip.ts'
import { LogWalk } from './walk.ts'

export interface BadRecord {
  segment: string
  /** Byte offset of the line in its segment; -1 when the record is not there. */
  offset: number
  seq: number
  why: string
}

export interface Verification {
  records: number
  heads: number
  root: string
  /** The first record that is wrong; null when everything fits. */
  bad: BadRecord | null
  /** A last line without its end: what a crash leaves. The next writer sets it aside. */
  torn: boolean
}

/** Reads the whole log and names the first record that is wrong. */
export async function verifyLog(directory: string, key: KeyObject): Promise<Verification> {
  const segments = await listSegments(directory)
  const walk = new LogWalk(key, verifiesHead, (segments[0] ?? 1) > 1)
  let torn = false
  for (const segment of segments)
    for await (const lines of linesOf(directory, segment))
      for (const { bytes, offset, whole } of lines) {
        torn = !whole && segment === segments.at(-1)
        if (torn) continue
        const why = whole ? walk.take(bytes) : 'a line without an end in the middle of the log'
        if (why !== null)
          return result(walk, { segment: segmentName(segment), offset, seq: walk.next, why }, false)
      }
  const why = cutSince(walk, await new TipFile(directory).read())
  const segment = segmentName(segments.at(-1) ?? 1)
  return result(walk, why === null ? null : { segment, offset: -1, seq: walk.next, why }, torn)
}

const result = (walk: LogWalk, bad: BadRecord | null, torn: boolean): Verification => ({
  records: walk.next,
  heads: walk.heads,
  root: walk.chain.tree.root().toString('hex'),
  bad,
  torn,
})

/** Records that were on disk and are gone, or a last record that was changed; null when the log reaches its tip. */
export function cutSince(walk: LogWalk, tip: Tip): string | null {
  if (walk.next < tip.next) return `the log ends before record ${tip.next - 1}, which was on disk`
  if (walk.next === tip.next && walk.chain.prev !== tip.prev) return 'the last record was changed'
  return null
}
