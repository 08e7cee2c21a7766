import type { KeyObject } from 'node:crypto'
import { type KeptHead, LogCheck, type Verification } from './check.ts'
import { linesOf, listSegments } from './segments.ts'
import { verifiesHead } from './signer.ts'
import { TipFile } from './tip.ts'
import { LogWalk } from './walk.ts'

/** Reads the whole log and names the first record that is wrong. The log may be written meanwhile. */
export async function verifyLog(
  directory: string,
  key: KeyObject,
  kept: KeptHead | null = null,
): Promise<Verification> {
  // The tip first: it is never ahead of what is on disk, and whatever is written from now on comes behind it.
  const tip = await new TipFile(directory).read()
  const segments = await listSegments(directory)
  const check = new LogCheck(new LogWalk(key, verifiesHead, (segments[0] ?? 1) > 1), segments, tip, kept)
  for (const segment of segments) {
    check.begin(segment)
    for await (const lines of linesOf(directory, segment))
      for (const line of lines) if (check.take(line)) return check.result()
  }
  check.end()
  return check.result()
}
