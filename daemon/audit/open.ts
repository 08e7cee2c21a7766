import { type FileHandle, mkdir, open, readFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { cutSince } from './check.ts'
import { cleanEnd } from './clean-end.ts'
import { decodeRecord, HEAD_KIND } from './record.ts'
import { segmentName } from './segment-name.ts'
import { createSegment, linesOf, listSegments } from './segments.ts'
import { type HeadSigner, loadSigner, verifiesHead } from './signer.ts'
import { TipFile } from './tip.ts'
import { LogWalk } from './walk.ts'

export interface OpenedLog {
  signer: HeadSigner
  tip: TipFile
  walk: LogWalk
  segment: number
  handle: FileHandle
  size: number
}

/**
 * Reads what is there before anything can be appended. A damaged log is refused; a torn last line, which nobody was
 * told about, is set aside.
 */
export async function openForAppend(
  directory: string,
  now: () => Date,
  believeCleanEnd: boolean,
): Promise<OpenedLog> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const segments = await listSegments(directory)
  const signer = await loadSigner(directory)
  const tip = new TipFile(directory)
  const known = await tip.read()
  const last = segments.at(-1)
  const clean = believeCleanEnd && last !== undefined ? await cleanEnd(directory, last, signer, known) : null
  const { walk, size } = clean ?? (await readTail(directory, segments, signer, now))
  const cut = cutSince(walk.chain, known)
  if (cut !== null)
    throw new PuzzledError('audit-failed', `The audit log in "${directory}" is not what it was: ${cut}`, {
      hint: `Look: puzzlectl audit verify. To begin a new log, keep this one: mv ${directory} ${directory}.damaged`,
    })
  const segment = last ?? 1
  if (last === undefined) await tip.create()
  const handle =
    last === undefined
      ? await createSegment(directory, segment)
      : await open(join(directory, segmentName(segment)), 'a', 0o600)
  return { signer, tip, walk, segment, handle, size }
}

/**
 * A segment begins with a head that carries the state. One that a crash left without, empty or not, needs those before it,
 * back to one that has it.
 */
async function readTail(
  directory: string,
  segments: readonly number[],
  signer: HeadSigner,
  now: () => Date,
): Promise<{ walk: LogWalk; size: number }> {
  let from = Math.max(0, segments.length - 1)
  while (from > 0 && !(await beginsWithHead(directory, segments[from] ?? 1))) from--
  const walk = new LogWalk(signer.publicKey, verifiesHead, (segments[from] ?? 1) > 1)
  let size = 0
  for (const segment of segments.slice(from)) {
    walk.beginSegment(segment)
    size = await readSegment(directory, segment, walk, now, segment === segments.at(-1))
  }
  return { walk, size }
}

async function beginsWithHead(directory: string, segment: number): Promise<boolean> {
  for await (const lines of linesOf(directory, segment))
    for (const { bytes, whole } of lines) return whole && decodeRecord(bytes)?.kind === HEAD_KIND
  return false
}

/** Bytes of whole lines. */
async function readSegment(
  directory: string,
  segment: number,
  walk: LogWalk,
  now: () => Date,
  isLast: boolean,
): Promise<number> {
  let size = 0
  for await (const lines of linesOf(directory, segment))
    for (const { bytes, offset, whole, endless } of lines) {
      if (!whole && isLast && endless === undefined) {
        await setTornAside(directory, segment, offset, bytes, now())
        continue
      }
      if (!whole) throw damaged(directory, segment, offset, 'it has no end')
      const wrong = walk.take(bytes)
      if (wrong !== null) throw damaged(directory, segment, offset, wrong.why)
      size = offset + bytes.length + 1
    }
  return size
}

const damaged = (directory: string, segment: number, offset: number, why: string): PuzzledError =>
  new PuzzledError(
    'audit-failed',
    `The audit record at byte ${offset} of ${segmentName(segment)} is wrong: ${why}`,
    {
      hint: `Look: puzzlectl audit verify. To begin a new log, keep this one: mv ${directory} ${directory}.damaged`,
      data: { segment: segmentName(segment), offset },
    },
  )

/** For a log that failed while it was open: the last segment ends where the last acknowledged record does. */
export async function cutUnacknowledged(
  directory: string,
  segment: number,
  size: number,
  now: Date,
): Promise<void> {
  const rest = (await readFile(join(directory, segmentName(segment)))).subarray(size)
  if (rest.length > 0) await setTornAside(directory, segment, size, rest, now)
}

async function setTornAside(
  directory: string,
  segment: number,
  offset: number,
  bytes: Buffer,
  now: Date,
): Promise<void> {
  const path = join(directory, `torn-${segmentName(segment)}-${offset}-${now.getTime()}`)
  const kept = await open(path, 'w', 0o600)
  try {
    await kept.writeFile(bytes)
    await kept.sync()
  } catch (error) {
    // Half a copy is worth nothing, and on a full disk every other try would leave one more.
    await rm(path, { force: true })
    throw error
  } finally {
    await kept.close()
  }
  failpoint('audit.torn-kept')
  await truncate(join(directory, segmentName(segment)), offset)
}
