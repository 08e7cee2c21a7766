import { type FileHandle, open, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { failpoint } from '../lib/failpoint.ts'

const NAME = /^(\d{8})\.jsonl$/

export const segmentName = (number: number): string => `${String(number).padStart(8, '0')}.jsonl`

/** Numbers of the segments that are there, oldest first. */
export async function listSegments(directory: string): Promise<number[]> {
  const names = await readdir(directory)
  return names
    .map((name) => NAME.exec(name)?.[1])
    .filter((number) => number !== undefined)
    .map(Number)
    .sort((a, b) => a - b)
}

/** The directory entry is durable before anything relies on the segment. */
export async function createSegment(directory: string, number: number): Promise<FileHandle> {
  const path = join(directory, segmentName(number))
  const handle = await open(`${path}.new`, 'w', 0o600)
  await handle.sync()
  failpoint('audit.segment-made')
  await rename(`${path}.new`, path)
  failpoint('audit.segment-named')
  const parent = await open(directory, 'r')
  try {
    await parent.sync()
  } finally {
    await parent.close()
  }
  return handle
}

export interface SegmentLine {
  bytes: Buffer
  /** Byte offset of the line in its segment. */
  offset: number
  /** False for a last line without its newline. */
  whole: boolean
}

const CHUNK = 1 << 20

/** The lines of one segment in order, chunk by chunk: memory does not grow with the segment. */
export async function* linesOf(directory: string, segment: number): AsyncGenerator<SegmentLine[]> {
  const handle = await open(join(directory, segmentName(segment)), 'r')
  try {
    let rest: Buffer = Buffer.alloc(0)
    let offset = 0
    for (let position = 0; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK)
      const { bytesRead } = await handle.read(chunk, 0, CHUNK, position)
      if (bytesRead === 0) break
      position += bytesRead
      const read = chunk.subarray(0, bytesRead)
      const data = rest.length === 0 ? read : Buffer.concat([rest, read])
      const lines: SegmentLine[] = []
      let from = 0
      for (let end = data.indexOf(10, from); end >= 0; end = data.indexOf(10, from)) {
        lines.push({ bytes: data.subarray(from, end), offset: offset + from, whole: true })
        from = end + 1
      }
      offset += from
      rest = data.subarray(from)
      yield lines
    }
    if (rest.length > 0) yield [{ bytes: rest, offset, whole: false }]
  } finally {
    await handle.close()
  }
}
