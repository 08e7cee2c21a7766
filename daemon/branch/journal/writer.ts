import { type Dir, type Disk, NO_NAME, nameOf } from '../../lib/disk.ts'
import { failpoint } from '../../lib/failpoint.ts'
import {
  type Begin,
  encodeLine,
  FIRST_CHECK,
  type JournalRecord,
  type Operation,
  RESERVE_BYTES,
} from './format.ts'
import type { ReadJournal } from './reader.ts'

const CHUNK = 256 * 1024

/** The end of a journal file: where the next record goes and the check that it must carry on. */
export interface JournalEnd {
  name: string
  end: number
  check: string
}

export const journalName = (commit: string): string => `${commit}.log`
/** The commit that a file in the journal's directory is the journal of; not those that were never published. */
export const commitOf = (file: string): string | undefined =>
  file.endsWith('.log') ? file.slice(0, -'.log'.length) : undefined
export const pendingName = (commit: string): string => `${commit}.log.new`

/**
 * Writes begin, operations and intent under a temporary name and makes them durable. It is not an INTENT yet:
 * `publishIntent` is, by one rename.
 */
export function writePending(
  disk: Disk,
  dir: Dir,
  begin: Begin,
  operations: Iterable<Operation>,
): JournalEnd {
  const name = nameOf(pendingName(begin.commit))
  let check = FIRST_CHECK
  let end = 0
  let count = 0
  let lines: string[] = []
  let size = 0
  const flush = (): void => {
    const bytes = Buffer.from(lines.join(''), 'utf8')
    if (bytes.length > 0) disk.writeAt(dir, name, end, bytes)
    end += bytes.length
    lines = []
    size = 0
  }
  const add = (record: JournalRecord): void => {
    const encoded = encodeLine(check, record)
    check = encoded.check
    lines.push(encoded.line)
    size += encoded.line.length
    if (size >= CHUNK) flush()
  }
  add(begin)
  for (const operation of operations) {
    add(operation)
    count++
  }
  add({ kind: 'intent', operations: count })
  flush()
  disk.writeAt(dir, name, end, Buffer.alloc(RESERVE_BYTES))
  disk.fsync(dir, name)
  // J2: the name of the list of changes, which recovery reads, is durable before INTENT is.
  disk.fsync(dir, NO_NAME)
  failpoint('journal.pending')
  return { name: journalName(begin.commit), end, check }
}

/** J1: before this returns the base is untouched. J3: after it, recovery goes forward. */
export function publishIntent(disk: Disk, dir: Dir, commit: string): void {
  disk.rename(dir, nameOf(pendingName(commit)), dir, nameOf(journalName(commit)), 'move')
  failpoint('journal.intent-renamed')
  disk.fsync(dir, NO_NAME)
  failpoint('journal.intent')
}

/** Appends one record and makes it durable. */
export function append(disk: Disk, dir: Dir, at: JournalEnd, record: JournalRecord): JournalEnd {
  const { line, check } = encodeLine(at.check, record)
  const bytes = Buffer.from(line, 'utf8')
  disk.writeAt(dir, nameOf(at.name), at.end, bytes)
  failpoint(`journal.${record.kind}-written`)
  disk.fsync(dir, nameOf(at.name))
  failpoint(`journal.${record.kind}`)
  return { name: at.name, end: at.end + bytes.length, check }
}

/** The only way to append to a journal of an earlier life is to have read it. */
export const continueJournal = (journal: ReadJournal): JournalEnd => ({
  name: journalName(journal.begin.commit),
  end: journal.end,
  check: journal.check,
})
