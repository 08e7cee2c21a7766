import type { KeyObject } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { workerPath } from '../lib/assets.ts'
import { WorkerLink } from '../lib/worker-link.ts'
import { type KeptHead, LogCheck, type Verification } from './check.ts'
import { checkPart, joined, type Part, type Question } from './parts.ts'
import { linesOf, listSegments } from './segments.ts'
import { verifiesHead } from './signer.ts'
import { TipFile } from './tip.ts'
import { LogWalk } from './walk.ts'

/** Each takes some 20 MB, and the disk has to keep up with all of them. */
const MOST_THREADS = 4

/**
 * Reads the whole log and names the first record that is wrong. The log may be written meanwhile. A log of several
 * segments is read by several threads; only if all of it fits is that believed, so what is wrong is always found in order.
 */
export async function verifyLog(
  directory: string,
  key: KeyObject,
  kept: KeptHead | null = null,
  threads = Math.min(MOST_THREADS, availableParallelism()),
): Promise<Verification> {
  // The tip first: it is never ahead of what is on disk, and whatever is written from now on comes behind it.
  const tip = await new TipFile(directory).read()
  const segments = await listSegments(directory)
  const question = { directory, segments, tip, kept }
  // One thread takes longer to start than the second of two segments, of which one is short, to read.
  const parts = threads > 1 && segments.length > 2 ? await checkParts(question, key, threads) : null
  return (parts && joined(parts, question)) ?? checkInOrder(question, key)
}

async function checkInOrder(question: Question, key: KeyObject): Promise<Verification> {
  const { directory, segments, tip, kept } = question
  const check = new LogCheck(new LogWalk(key, verifiesHead, (segments[0] ?? 1) > 1), segments, tip, kept)
  for (const segment of segments) {
    check.begin(segment)
    for await (const lines of linesOf(directory, segment))
      for (const line of lines) if (check.take(line)) return check.result()
  }
  check.end()
  return check.result()
}

/**
 * In the order of the segments. This thread is one of those that work; who is done takes the next segment. What is null is
 * wrong, could not be read, or was not looked at because something else is: reading in order says which.
 */
async function checkParts(question: Question, key: KeyObject, threads: number): Promise<(Part | null)[]> {
  const { segments } = question
  const parts: (Part | null)[] = segments.map(() => null)
  let next = 0
  const work = async (check: (segment: number) => Promise<Part | null>): Promise<void> => {
    for (let at = next++; at < segments.length; at = next++) {
      // Also where there is no memory for another thread: reading in order needs none.
      parts[at] = await check(segments[at] ?? 0).catch(() => null)
      if (parts[at] === null) next = segments.length
    }
  }
  const links = Array.from(
    { length: Math.min(threads, segments.length) - 1 },
    () => new WorkerLink(workerPath('verify')),
  )
  const spki = key.export({ type: 'spki', format: 'pem' })
  const elsewhere = links.map((link) =>
    work(async (segment) => (await link.call('check', { question, key: spki, segment })) as Part | null),
  )
  await Promise.all([work((segment) => checkPart(question, key, segment)), ...elsewhere])
  await Promise.all(links.map((link) => link.close()))
  return parts
}
