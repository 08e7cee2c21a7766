import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { OutputEntry, OutputPart } from '../contract/engine.ts'
import { errnoOf } from '../lib/errors.ts'

/**
 * What the agent of a branch wrote, in `output/` of the branch's directory: segments that are named after the offset at
 * which they begin, each a row of entries. The newest two are kept. An offset is a cursor that stays valid: what was
 * removed behind it is only missing. Entries are not synced; after a power cut a torn last one is absent, in a segment that
 * others follow too.
 */
export const SEGMENT_BYTES = 4 << 20
const KEPT_SEGMENTS = 2
/** Output that waits for a slow disk; what comes beyond it is left out: better a gap than an agent that waits. */
const MOST_WAITING = 4 << 20
const MOST_ENTRY = 256 << 10

const FOLDER = 'output'
/** Stream, milliseconds since 1970, length. */
const HEAD_BYTES = 1 + 8 + 4
/** As far as dates go. */
const LATEST_MILLIS = 8.64e15
const STREAMS = ['stdout', 'stderr'] as const

const segmentName = (offset: number): string => String(offset).padStart(15, '0')

export class FileOutputLogs {
  readonly #directoryOf: (id: string) => string
  readonly #now: () => Date

  constructor(directoryOf: (id: string) => string, now: () => Date) {
    this.#directoryOf = directoryOf
    this.#now = now
  }

  /** One writer per branch. */
  open(id: string): SegmentWriter {
    return new SegmentWriter(join(this.#directoryOf(id), FOLDER), this.#now)
  }

  async read(id: string, cursor: number, limit: number): Promise<Omit<OutputPart, 'ended'>> {
    const folder = join(this.#directoryOf(id), FOLDER)
    const starts = await segmentsOf(folder)
    const entries: OutputEntry[] = []
    let next = cursor
    let lost = 0
    let room = limit
    for (const [index, start] of starts.entries()) {
      const end = starts[index + 1] ?? Number.POSITIVE_INFINITY
      if (end <= next) continue
      // Removed, or never on the disk when the power went.
      lost += Math.max(0, start - next)
      next = Math.max(next, start)
      const read = await readSegment(join(folder, segmentName(start)), next - start, room)
      entries.push(...read.entries)
      next += read.bytes
      room -= read.bytes
      if (room <= 0) break
    }
    return { entries, next, lost }
  }
}

async function segmentsOf(folder: string): Promise<number[]> {
  try {
    const names = await readdir(folder)
    return names
      .filter((name) => /^\d{15}$/.test(name))
      .map(Number)
      .sort((a, b) => a - b)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}

/** Whole entries from an offset on: at least one, and no more than fill `limit`. */
async function readSegment(
  path: string,
  offset: number,
  limit: number,
): Promise<{ entries: OutputEntry[]; bytes: number }> {
  const bytes = await readPart(path, offset, limit + HEAD_BYTES + MOST_ENTRY)
  const entries: OutputEntry[] = []
  let at = 0
  while (at + HEAD_BYTES <= bytes.length && (at < limit || entries.length === 0)) {
    const size = bytes.readUInt32BE(at + 9)
    if (at + HEAD_BYTES + size > bytes.length) break
    const stream = STREAMS[bytes.readUInt8(at)] ?? 'stdout'
    const millis = Number(bytes.readBigUInt64BE(at + 1))
    // A cursor that nobody was given points into the middle of an entry, and a power cut can leave a tail of zeros: there
    // is nothing to read there.
    if (millis === 0 || millis > LATEST_MILLIS) break
    const start = at + HEAD_BYTES
    entries.push({
      at: new Date(millis).toISOString(),
      stream,
      bytes: Buffer.from(bytes.subarray(start, start + size)),
    })
    at = start + size
  }
  return { entries, bytes: at }
}

/** Empty when the segment was removed since it was listed: a newer one follows. */
async function readPart(path: string, offset: number, most: number): Promise<Buffer> {
  try {
    const file = await open(path, 'r')
    try {
      const { size } = await file.stat()
      const bytes = Buffer.alloc(Math.max(0, Math.min(size - offset, most)))
      const { bytesRead } = await file.read(bytes, 0, bytes.length, offset)
      return bytes.subarray(0, bytesRead)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

/** Takes output without waiting and writes it in the order in which it came. */
export class SegmentWriter {
  readonly #folder: string
  readonly #now: () => Date
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #writing: Promise<void> | undefined
  #offset: number | undefined
  #segment = 0
  /** A disk that refused once is not asked again for this agent. */
  #failed = false

  constructor(folder: string, now: () => Date) {
    this.#folder = folder
    this.#now = now
  }

  write(stream: OutputEntry['stream'], bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += MOST_ENTRY)
      this.#take(stream, bytes.subarray(at, at + MOST_ENTRY))
  }

  #take(stream: OutputEntry['stream'], bytes: Buffer): void {
    if (this.#failed || this.#waitingBytes + bytes.length > MOST_WAITING) return
    const head = Buffer.alloc(HEAD_BYTES)
    head.writeUInt8(STREAMS.indexOf(stream), 0)
    head.writeBigUInt64BE(BigInt(this.#now().getTime()), 1)
    head.writeUInt32BE(bytes.length, 9)
    this.#waiting.push(head, bytes)
    this.#waitingBytes += head.length + bytes.length
    this.#writing ??= this.#drain()
  }

  async end(): Promise<void> {
    await this.#writing
  }

  async #drain(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const bytes = Buffer.concat(this.#waiting)
        this.#waiting = []
        this.#waitingBytes = 0
        await this.#append(bytes)
      }
    } catch {
      // The disk is full, or the branch was discarded: the agent goes on, its output is just not kept any more.
      this.#failed = true
      this.#waiting = []
    } finally {
      this.#writing = undefined
    }
  }

  async #append(bytes: Buffer): Promise<void> {
    const offset = this.#offset ?? (await this.#findEnd())
    if (offset - this.#segment >= SEGMENT_BYTES) await this.#beginSegment(offset)
    const file = await open(join(this.#folder, segmentName(this.#segment)), 'a', 0o600)
    try {
      await file.writeFile(bytes)
    } finally {
      await file.close()
    }
    this.#offset = offset + bytes.length
  }

  /** Behind what an earlier agent of the branch wrote. A torn entry at its end would hide all that follows. */
  async #findEnd(): Promise<number> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const last = (await segmentsOf(this.#folder)).at(-1)
    if (last === undefined) return 0
    const path = join(this.#folder, segmentName(last))
    const { bytes } = await readSegment(path, 0, Number.POSITIVE_INFINITY)
    const file = await open(path, 'r+')
    try {
      await file.truncate(bytes)
    } finally {
      await file.close()
    }
    this.#segment = last
    return last + bytes
  }

  async #beginSegment(offset: number): Promise<void> {
    this.#segment = offset
    const old = (await segmentsOf(this.#folder)).slice(0, -(KEPT_SEGMENTS - 1))
    for (const start of old) await rm(join(this.#folder, segmentName(start)), { force: true })
  }
}
