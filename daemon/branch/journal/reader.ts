// pure
import {
  type Begin,
  decodeLine,
  FIRST_CHECK,
  isOperation,
  JOURNAL_VERSION,
  type JournalRecord,
  type Operation,
} from './format.ts'

/** A journal that was read to its end. Only with this in hand may anything be appended. */
export interface ReadJournal {
  kind: 'read'
  begin: Begin
  operations: readonly Operation[]
  /** What was recorded after INTENT, in order. */
  outcome: readonly JournalRecord[]
  /** Where the next record goes; a torn tail is overwritten. */
  end: number
  check: string
}

export interface DamagedJournal {
  kind: 'damaged' | 'newer'
  /** What is wrong and where, for people. */
  reason: string
  /** What could still be read, for the branch to be named. */
  begin: Begin | null
}

const NEWLINE = 0x0a

/**
 * Everything up to INTENT was durable before the file had its name, so damage there is damage. Behind it stand single
 * appended records: an incomplete last one was never promised to anybody and is absent.
 */
export function parseJournal(bytes: Buffer): ReadJournal | DamagedJournal {
  const seen: JournalRecord[] = []
  let check = FIRST_CHECK
  let at = 0
  let intentAt: number | undefined
  const damaged = (reason: string): DamagedJournal => ({
    kind: 'damaged',
    reason: `${reason} at byte ${at}`,
    begin: seen[0]?.kind === 'begin' ? seen[0] : null,
  })
  while (at < bytes.length && bytes[at] !== 0) {
    const newline = bytes.indexOf(NEWLINE, at)
    const decoded = newline < 0 ? undefined : decodeOrNothing(check, bytes.toString('utf8', at, newline))
    if (decoded === undefined) {
      if (intentAt !== undefined && isTorn(bytes, newline)) break
      return damaged('a record is damaged')
    }
    const problem = misplaced(seen, decoded.record, intentAt !== undefined)
    if (problem !== undefined) return damaged(problem)
    if (decoded.record.kind === 'begin' && decoded.record.version > JOURNAL_VERSION)
      return { kind: 'newer', reason: `version ${decoded.record.version}`, begin: decoded.record }
    seen.push(decoded.record)
    if (decoded.record.kind === 'intent') intentAt = seen.length
    check = decoded.check
    at = newline + 1
  }
  const [begin] = seen
  if (intentAt === undefined || begin?.kind !== 'begin') return damaged('INTENT is missing')
  const operations = seen.slice(1, intentAt - 1).filter(isOperation)
  return { kind: 'read', begin, operations, outcome: seen.slice(intentAt), end: at, check }
}

function decodeOrNothing(check: string, line: string): ReturnType<typeof decodeLine> {
  try {
    return decodeLine(check, line)
  } catch {
    // Not JSON: the caller decides whether that is a torn tail or damage.
    return undefined
  }
}

/** Nothing but the reserve's zeros may follow the record that was being written when the power went. */
const isTorn = (bytes: Buffer, newline: number): boolean =>
  newline < 0 || bytes.subarray(newline + 1).every((byte) => byte === 0)

function misplaced(
  seen: readonly JournalRecord[],
  record: JournalRecord,
  afterIntent: boolean,
): string | undefined {
  if (seen.length === 0) return record.kind === 'begin' ? undefined : 'the first record is not "begin"'
  if (record.kind === 'begin') return 'a second "begin"'
  if (record.kind === 'intent') {
    if (afterIntent) return 'a second "intent"'
    return record.operations === seen.length - 1 ? undefined : 'the number of operations is wrong'
  }
  if (isOperation(record) === afterIntent) return `"${record.kind}" in the wrong place`
  return undefined
}

export type JournalState = 'intent' | 'done' | 'undone' | 'stuck'

/** The last word counts; `retried` opens a stuck commit again. */
export function stateOf(journal: ReadJournal): JournalState {
  const last = journal.outcome.at(-1)
  if (last === undefined || last.kind === 'retried') return 'intent'
  return last.kind === 'done' || last.kind === 'undone' || last.kind === 'stuck' ? last.kind : 'intent'
}
