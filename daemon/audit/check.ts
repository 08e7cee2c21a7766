// pure
import { leafHex } from '../lib/merkle.ts'
import type { Misfit } from './chain.ts'
import { archivedThrough, decodeRecord, linePrefix } from './record.ts'
import { segmentName } from './segment-name.ts'
import type { SegmentLine } from './segments.ts'
import type { Tip } from './tip.ts'
import type { LogWalk, WalkState } from './walk.ts'

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
  /** How many records the last signed head covers: of what came after it, only the tip knows. */
  signed: number
  root: string
  /** The first record that is wrong; null when everything fits. */
  bad: BadRecord | null
  /** A last line without its end: what a crash leaves. The next writer sets it aside. */
  torn: boolean
}

/** What an auditor kept elsewhere: the log must have grown from it. */
export interface KeptHead {
  size: number
  root: string
}

export interface Findings {
  /** The last segment that a record says may have been archived, or 0. */
  archived: number
  /** The log had the root that was kept. */
  grew: boolean
  torn: boolean
}

interface Place {
  segment: string
  offset: number
  seq: number
}

/** Takes the lines of a log in order, and names the first that is wrong. */
export class LogCheck {
  readonly #walk: LogWalk
  readonly #tip: Tip | null
  readonly #kept: KeptHead | null
  #grew = false
  readonly #first: number
  readonly #last: number
  #archived = 0
  #segment = 0
  /** Of the last line that was taken; a negative offset: there was none. */
  #beforeSegment = 0
  #beforeOffset = -1
  #beforeBytes: Buffer = Buffer.alloc(0)
  /** A line that does not follow the one before it, until the next line tells which of the two was changed. */
  #doubt: { place: Place; why: string; hash: string } | null = null
  #bad: BadRecord | null = null
  #torn = false

  constructor(walk: LogWalk, segments: readonly number[], tip: Tip | null, kept: KeptHead | null = null) {
    this.#first = segments[0] ?? 1
    this.#last = segments.at(-1) ?? 1
    this.#walk = walk
    this.#tip = tip
    this.#kept = kept
  }

  begin(segment: number): void {
    this.#segment = segment
    this.#walk.beginSegment(segment)
  }

  /** True: something is wrong, and nothing more needs to be read. */
  take({ bytes, offset, whole, endless }: SegmentLine): boolean {
    if (this.#doubt !== null) return this.#settle(bytes)
    if (!whole) return this.#cut(this.#placeOf(offset), endless === true)
    const wrong = this.#walk.take(bytes)
    if (wrong !== null) return this.#refuse(bytes, this.#placeOf(offset), wrong)
    this.#beforeSegment = this.#segment
    this.#beforeOffset = offset
    this.#beforeBytes = bytes
    if (this.#first > 1) this.#archived = Math.max(this.#archived, archivedThrough(bytes))
    if (this.#differsFromTip()) return this.#name(this.#before(), 'the last record was changed')
    return (
      this.#differsFromKept() && this.#name(this.#before(), 'this record or one before it is not what it was')
    )
  }

  /** At the end of the log. */
  end(): void {
    if (this.#doubt !== null) this.#settle(null)
    if (this.#bad !== null) return
    const gone = { segment: segmentName(this.#last), offset: -1, seq: this.#walk.next }
    const why = cutSince(this.#walk.chain, this.#tip)
    if (why !== null) this.#nameOr(gone, why)
    else if (this.#first - 1 > this.#archived)
      this.#name({ segment: segmentName(1), offset: -1, seq: 0 }, NOT_ARCHIVED)
    else if (this.#kept !== null && !this.#grew)
      this.#name({ ...gone, seq: this.#kept.size - 1 }, NOT_AT_HAND)
  }

  /** What was read fits, the last line included: what the rest of the log has to say to it is another's business. */
  fits(): boolean {
    return this.#bad === null && this.#doubt === null
  }

  /** Of what only one part of a log can say. */
  findings(): Findings {
    return { archived: this.#archived, grew: this.#grew, torn: this.#torn }
  }

  result(): Verification {
    const { next, heads, signed, chain } = this.#walk
    const root = chain.tree.root().toString('hex')
    return { records: next, heads, signed, root, bad: this.#bad, torn: this.#bad === null && this.#torn }
  }

  #placeOf(offset: number): Place {
    return { segment: segmentName(this.#segment), offset, seq: this.#walk.next }
  }

  #before(): Place {
    return {
      segment: segmentName(this.#beforeSegment),
      offset: this.#beforeOffset,
      seq: this.#walk.next - 1,
    }
  }

  #cut(place: Place, endless: boolean): boolean {
    this.#torn = !endless && this.#segment === this.#last
    if (this.#torn) return false
    return this.#name(
      place,
      endless ? 'a line that is longer than any record' : 'a line without an end in the middle of the log',
    )
  }

  #refuse(bytes: Buffer, place: Place, { why, isLink }: Misfit): boolean {
    if (!isLink) return this.#nameOr(place, why)
    this.#doubt = { place, why, hash: leafHex(bytes) }
    return false
  }

  #differsFromTip(): boolean {
    const { next, chain } = this.#walk
    return this.#tip !== null && next === this.#tip.next && chain.prev !== this.#tip.prev
  }

  #differsFromKept(): boolean {
    if (this.#kept === null || this.#walk.next !== this.#kept.size) return false
    this.#grew = this.#walk.chain.tree.root().toString('hex') === this.#kept.root
    return !this.#grew
  }

  /** Where the line after the doubtful one follows it, that one is as it was written, and the one before it was changed. */
  #settle(after: Buffer | null): true {
    const { place, why, hash } = this.#doubt ?? { place: this.#before(), why: '', hash: '' }
    const next = linePrefix(place.seq + 1, hash)
    const follows =
      after === null
        ? this.#tip?.next === place.seq + 1 && this.#tip.prev === hash
        : after.toString('latin1', 0, next.length) === next
    return follows && this.#beforeOffset >= 0
      ? this.#name(this.#before(), 'it was changed: the record after it does not follow it any more')
      : this.#name(place, why)
  }

  /** A line that was cut in two, or grew together with the next, begins as it should: what comes after it does not fit. */
  #nameOr(place: Place, why: string): true {
    if (this.#beforeOffset < 0 || decodeRecord(this.#beforeBytes) !== null) return this.#name(place, why)
    return this.#name(this.#before(), 'it is not a record any more')
  }

  #name(place: Place, why: string): true {
    this.#bad = { ...place, why }
    return true
  }
}

const NOT_ARCHIVED =
  'the log does not begin here any more, and no record says that its beginning was archived'

const NOT_AT_HAND = 'the log does not have so many records, or they are in the archive'

/** Records that were on disk and are gone, or a last record that was changed; null when the log reaches its tip. */
export function cutSince({ next, prev }: Pick<WalkState, 'next' | 'prev'>, tip: Tip | null): string | null {
  if (tip === null) return next === 0 ? null : 'the file "tip", which says how far the log had come, is gone'
  if (next < tip.next) return `the log ends before record ${tip.next - 1}, which was on disk`
  if (next === tip.next && prev !== tip.prev) return 'the last record was changed'
  return null
}
