import type { FileHandle } from 'node:fs/promises'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { cutUnacknowledged, type OpenedLog, openForAppend } from './open.ts'
import { type AuditRecord, encodeFacts, encodeLine, HEAD_KIND, type HeadFacts } from './record.ts'
import { createSegment, LONGEST_LINE } from './segments.ts'

export interface AuditLogOptions {
  now: () => Date
  /** A segment is sealed with a signed tree head when it is larger than this. */
  segmentBytes?: number
  /**
   * For one command: where the log was closed in order, only its signed end is read. Otherwise the last segment is, and
   * one whose records do not fit is refused.
   */
  believeCleanEnd?: boolean
  /** How long a log that could not be written waits before it tries again. */
  retryMillis?: number
}

interface Entry {
  kind: string
  branch: string
  /** JSON: as it was when it was given, so that what cannot be encoded is refused alone. */
  facts: string
}

interface Waiting {
  entry: Entry
  resolve: (seq: number) => void
  reject: (error: unknown) => void
}

/** Small enough that reading one at start-up takes a fraction of a second. */
const SEGMENT_BYTES = 16 << 20
/** Bound how much is in memory and how long one batch takes. */
const BATCH = 4096
const BATCH_LENGTH = 8 << 20
/** In characters, of which each is at most three bytes; with room for the other fields. */
const LONGEST_FACTS = Math.floor((LONGEST_LINE - 4096) / 3)
const NEWLINE = Buffer.from('\n')

const RETRY_MILLIS = 1_000

/**
 * Append-only, hash-chained log. `append` resolves when the record is on disk; everything that waits at that moment
 * shares one fsync. After a failed write nothing is accepted until the log was opened again as after a crash, from what is
 * on disk: a log with a hole is worse than no log. That is tried with the next record, at most once a second.
 */
export class AuditLog {
  readonly #directory: string
  readonly #now: () => Date
  readonly #segmentBytes: number
  readonly #retryMillis: number
  #log: OpenedLog
  #waiting: Waiting[] = []
  #writing: Promise<void> | null = null
  #broken: { cause: unknown; at: number; refused: number } | null = null
  #closed = false

  private constructor(directory: string, options: AuditLogOptions, log: OpenedLog) {
    this.#directory = directory
    this.#now = options.now
    this.#segmentBytes = options.segmentBytes ?? SEGMENT_BYTES
    this.#retryMillis = options.retryMillis ?? RETRY_MILLIS
    this.#log = log
  }

  static async open(directory: string, options: AuditLogOptions): Promise<AuditLog> {
    return new AuditLog(
      directory,
      options,
      await openForAppend(directory, options.now, options.believeCleanEnd ?? false),
    )
  }

  /** The record's number, once it is on disk. */
  append(kind: string, branch: string, facts: Readonly<Record<string, unknown>>): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new PuzzledError('audit-failed', 'The audit log was closed')
      this.#waiting.push({ entry: entryOf(kind, branch, facts), resolve, reject })
      this.#writing ??= this.#drain()
    })
  }

  /** Waits for what was appended and ends the log with a signed head. Nothing is accepted any more. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#writing
    try {
      if (this.#broken === null && this.#log.walk.next > 0) await this.#write([this.#headLine()])
    } finally {
      await closeFiles(this.#log)
    }
  }

  async #drain(): Promise<void> {
    // The callers of this turn of the event loop share the first write as well.
    await Promise.resolve()
    try {
      while (this.#waiting.length > 0) await this.#writeBatch(this.#nextBatch())
    } finally {
      this.#writing = null
    }
  }

  #nextBatch(): Waiting[] {
    let [count, length] = [0, 0]
    for (const { entry } of this.#waiting) {
      length += entry.facts.length
      if (count === BATCH || (count > 0 && length > BATCH_LENGTH)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      if (this.#broken !== null) await this.#reopen(this.#broken)
      if (this.#log.size >= this.#segmentBytes) await this.#rotate()
      await this.#beginSegment()
      const first = this.#log.walk.next
      await this.#write(batch.map(({ entry }) => this.#nextLine(entry)))
      for (const [at, { resolve }] of batch.entries()) resolve(first + at)
    } catch (cause) {
      const refused = [...batch, ...this.#waiting.splice(0)]
      // Told that it is too early, one asks again when the time has come that was set before.
      const before = this.#broken
      const at = before !== null && before.cause === cause ? before.at : performance.now()
      this.#broken = { cause, at, refused: (before?.refused ?? 0) + refused.length }
      for (const { reject } of refused) reject(brokenError(cause))
    }
  }

  /**
   * What was not acknowledged is set aside, whatever the kernel still has of it: after a failed sync nobody knows what
   * reached the disk. The rest is read and must fit the tip.
   */
  async #reopen({ cause, at, refused }: { cause: unknown; at: number; refused: number }): Promise<void> {
    if (performance.now() - at < this.#retryMillis) throw cause
    const { segment, size } = this.#log
    // A disk that is gone may refuse that, too; what counts is what can be opened now.
    await closeFiles(this.#log).catch(() => undefined)
    await cutUnacknowledged(this.#directory, segment, size, this.#now())
    failpoint('audit.cut')
    this.#log = await openForAppend(this.#directory, this.#now, false)
    await this.#beginSegment()
    const facts = { refused, cause: cause instanceof Error ? cause.message : String(cause) }
    await this.#write([this.#nextLine(entryOf('log-reopened', '', facts))])
    this.#broken = null
    failpoint('audit.reopened')
  }

  #nextLine({ kind, branch, facts }: Entry): Buffer {
    const { chain } = this.#log.walk
    const time = this.#now().toISOString()
    const line = encodeLine({ seq: chain.next, prev: chain.prev, time, kind, branch }, facts)
    chain.append(line)
    return line
  }

  /** Log first, then tip: the tip may lag behind what is on disk, never promise what is not. */
  async #write(lines: readonly Buffer[]): Promise<void> {
    const { handle, tip, walk } = this.#log
    const bytes = Buffer.concat(lines.flatMap((line) => [line, NEWLINE]))
    failpoint('audit.before-append')
    await writeAll(handle, bytes)
    failpoint('audit.before-sync')
    await handle.datasync()
    this.#log.size += bytes.length
    failpoint('audit.before-tip')
    await tip.write({ next: walk.next, prev: walk.chain.prev })
    failpoint('audit.after-tip')
  }

  #headLine(): Buffer {
    const { walk, signer } = this.#log
    const { tree } = walk.chain
    const root = tree.root()
    const facts: HeadFacts = {
      size: tree.size,
      root: root.toString('hex'),
      edge: tree.edge().map((hash) => hash.toString('hex')),
      signature: signer.sign(tree.size, root),
    }
    return this.#nextLine(entryOf(HEAD_KIND, '', { ...facts }))
  }

  /** The old segment ends in a signed head, the new one begins with one: either can be read without the other. */
  async #rotate(): Promise<void> {
    await this.#write([this.#headLine()])
    failpoint('audit.sealed')
    const next = await createSegment(this.#directory, this.#log.segment + 1)
    try {
      failpoint('audit.segment-created')
      await this.#log.handle.close()
    } catch (error) {
      await next.close()
      throw error
    }
    this.#log.handle = next
    this.#log.segment++
    this.#log.size = 0
    await this.#beginSegment()
    failpoint('audit.rotated')
  }

  /** Also where a crash came between the segment and its head. */
  async #beginSegment(): Promise<void> {
    if (this.#log.size === 0 && this.#log.walk.next > 0) await this.#write([this.#headLine()])
  }
}

/** One record that cannot be written is refused by itself: it must not take those that wait beside it along. */
function entryOf(kind: string, branch: string, facts: AuditRecord['facts']): Entry {
  try {
    const text = encodeFacts(facts)
    if (text.length <= LONGEST_FACTS) return { kind, branch, facts: text }
  } catch (cause) {
    throw new PuzzledError('audit-failed', `A record "${kind}" cannot be written as JSON`, { cause })
  }
  throw new PuzzledError('audit-failed', `A record "${kind}" is too long for the audit log`)
}

async function closeFiles({ handle, tip }: OpenedLog): Promise<void> {
  await Promise.all([handle.close(), tip.close()])
}

const brokenError = (cause: unknown): PuzzledError =>
  new PuzzledError('audit-failed', 'The audit log cannot be written', {
    cause,
    hint: 'Nothing is committed until it can. Free space on the store: it is tried again by itself.',
  })

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten
}
