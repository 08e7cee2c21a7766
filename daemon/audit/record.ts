// pure

/** What is on record about one moment. Field order is the order on disk: it is part of what is hashed. */
export interface AuditRecord {
  seq: number
  /** Hex leaf hash of the line before; zeros for the first. */
  prev: string
  time: string
  kind: string
  branch: string
  facts: Readonly<Record<string, unknown>>
}

/** What the log itself writes: the signed state of the tree before this line. */
export interface HeadFacts {
  size: number
  root: string
  /** Roots of the full subtrees, so that a reader can continue from here. */
  edge: readonly string[]
  signature: string
}

export const HEAD_KIND = 'tree-head'
/** Written before retention moves segments away: `through` is the number of the last one that may be gone. */
export const ARCHIVED_KIND = 'archived'
export const FIRST_PREV = '0'.repeat(64)

/** One line without its newline. JSON escapes control characters, so no name can end a record or begin another. */
export const encodeRecord = ({ facts, ...fields }: AuditRecord): Buffer =>
  encodeLine(fields, encodeFacts(facts))

/** Throws for what JSON cannot hold: circles, and what is nested too deep. */
export const encodeFacts = (facts: AuditRecord['facts']): string => JSON.stringify(facts, encodeValue)

/** A record whose facts were encoded before its place in the log was known. */
export function encodeLine(fields: Omit<AuditRecord, 'facts'>, facts: string): Buffer {
  const { seq, prev, time, kind, branch } = fields
  const begin = JSON.stringify({ seq, prev, time, kind, branch }).slice(0, -1)
  return Buffer.from(`${begin},"facts":${facts}}`, 'utf8')
}

/** JSON has no 64-bit integers: they are decimal strings. */
function encodeValue(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}

/** How a line with this number after that hash must begin. */
export const linePrefix = (seq: number, prev: string): string => `{"seq":${seq},"prev":"${prev}",`

/** Null for anything that is not exactly a record: a reader must not guess. */
export function decodeRecord(line: Uint8Array): AuditRecord | null {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(line).toString('utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
  return isRecord(value) ? value : null
}

function isRecord(value: unknown): value is AuditRecord {
  if (typeof value !== 'object' || value === null) return false
  const { seq, prev, time, kind, branch, facts } = value as Partial<Record<keyof AuditRecord, unknown>>
  const texts = [prev, time, kind, branch].every((text) => typeof text === 'string')
  return Number.isSafeInteger(seq) && texts && typeof facts === 'object' && facts !== null
}

const HEAD_MARK = Buffer.from(`"kind":"${HEAD_KIND}"`)

/** Cheap and never wrong about a real head; `decodeRecord` decides. */
export const mayBeHead = (line: Buffer): boolean => line.includes(HEAD_MARK)

const ARCHIVED_MARK = Buffer.from(`"kind":"${ARCHIVED_KIND}"`)

/** The last segment that this line says may have been archived, or 0. */
export function archivedThrough(line: Buffer): number {
  if (!line.includes(ARCHIVED_MARK)) return 0
  const record = decodeRecord(line)
  const through = record?.kind === ARCHIVED_KIND ? record.facts.through : 0
  return typeof through === 'number' ? through : 0
}

const BRANCH_MARK = Buffer.from('","branch":"')
/** Before this there are only the number, the hash and the time, which hold no quote. */
const BRANCH_AFTER = 80

/**
 * The branch of a line without parsing it: the order of the fields is part of the format, and neither a kind nor an id has
 * anything to escape. For skipping lines; `decodeRecord` decides.
 */
export function branchOf(line: Buffer): string {
  const mark = line.indexOf(BRANCH_MARK, BRANCH_AFTER)
  const from = mark + BRANCH_MARK.length
  return mark < 0 ? '' : line.toString('latin1', from, line.indexOf(34, from))
}
