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
export const FIRST_PREV = '0'.repeat(64)

/** One line without its newline. JSON escapes control characters, so no name can end a record or begin another. */
export function encodeRecord(record: AuditRecord): Buffer {
  const { seq, prev, time, kind, branch, facts } = record
  return Buffer.from(JSON.stringify({ seq, prev, time, kind, branch, facts }, encodeValue), 'utf8')
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
