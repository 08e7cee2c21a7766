import { type FileHandle, link, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { segmentName, segmentNumber } from './segment-name.ts'

/** Beside the segments: the same filesystem, and the same rights. */
export const ARCHIVE = 'archive'
/** No record is longer; whoever reads a line that is reads no further. */
export const LONGEST_LINE = 32 << 20

/** Numbers of the segments that are there, oldest first. */
export async function listSegments(directory: string): Promise<number[]> {
  const names = await readdir(directory)
  const numbers = names.map(segmentNumber).filter((number) => number !== undefined)
  return numbers.sort((a, b) => a - b)
}

/** The directory entry is durable before anything relies on the segment. One that is there is never written over. */
export async function createSegment(directory: string, number: number): Promise<FileHandle> {
  const path = join(directory, segmentName(number))
  await rm(`${path}.new`, { force: true })
  const handle = await open(`${path}.new`, 'wx', 0o600)
  try {
    await handle.sync()
    failpoint('audit.segment-made')
    await link(`${path}.new`, path)
    failpoint('audit.segment-named')
    await rm(`${path}.new`)
    const parent = await open(directory, 'r')
    try {
      await parent.sync()
    } finally {
      await parent.close()
    }
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

export interface SegmentLine {
  bytes: Buffer
  /** Byte offset of the line in its segment. */
  offset: number
  /** False for a last line without its newline. */
  whole: boolean
  /** Longer than any record: `bytes` is only its beginning, and what follows was not read. */
  endless?: true
}

const CHUNK = 1 << 18
const SMALL_CHUNK = 4096

/** The lines of one segment in order, chunk by chunk: memory does not grow with the segment. */
export async function* linesOf(directory: string, segment: number): AsyncGenerator<SegmentLine[]> {
  const handle = await openSegment(directory, segment)
  try {
    let rest: Buffer[] = []
    let offset = 0
    const { size } = await handle.stat()
    for (let position = 0; ; ) {
      // It may have grown since; most segments are small, and a buffer of a megabyte is not.
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(size - position, SMALL_CHUNK)))
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, position)
      if (bytesRead === 0) break
      position += bytesRead
      const read = chunk.subarray(0, bytesRead)
      rest.push(read)
      if (read.includes(NEWLINE)) {
        const { lines, end, left } = split(rest.length === 1 ? read : Buffer.concat(rest), offset)
        offset = end
        rest = left.length === 0 ? [] : [left]
        yield lines
      }
      if (position - offset <= LONGEST_LINE) continue
      yield [{ bytes: rest[0] ?? read, offset, whole: false, endless: true }]
      return
    }
    if (rest.length > 0) yield [{ bytes: Buffer.concat(rest), offset, whole: false }]
  } finally {
    await handle.close()
  }
}

const NEWLINE = 10

/** The whole lines at the beginning of `data`, and what is left behind them. */
export function split(data: Buffer, offset: number): { lines: SegmentLine[]; end: number; left: Buffer } {
  const lines: SegmentLine[] = []
  let from = 0
  for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE, from)) {
    lines.push({ bytes: data.subarray(from, end), offset: offset + from, whole: true })
    from = end + 1
  }
  return { lines, end: offset + from, left: data.subarray(from) }
}

/** Retention may have moved it since it was listed. */
async function openSegment(directory: string, segment: number): Promise<FileHandle> {
  const name = segmentName(segment)
  try {
    return await open(join(directory, name), 'r')
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
  return open(join(directory, ARCHIVE, name), 'r')
}
