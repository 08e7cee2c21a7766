import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { mayBeHead } from './record.ts'
import { segmentName } from './segment-name.ts'
import { type HeadSigner, verifiesHead } from './signer.ts'
import type { Tip } from './tip.ts'
import { LogWalk } from './walk.ts'

/** A head is a few hundred bytes and grows with the logarithm of the log. */
const WINDOW = 16 * 1024
const NEWLINE = 10

export interface CleanEnd {
  walk: LogWalk
  size: number
}

/**
 * Where the log was closed in order, its last line is a signed head that carries the whole state, and the tip names
 * exactly that line: nothing before it needs to be read to go on. Null for every other end, which is read from the
 * segment's beginning. Records in the middle are `audit verify`'s business: whatever is appended here stays bound to
 * what was signed, so a changed one is found later as it would be found now.
 */
export async function cleanEnd(
  directory: string,
  segment: number,
  signer: HeadSigner,
  tip: Tip | null,
): Promise<CleanEnd | null> {
  const found = await lastLine(join(directory, segmentName(segment)))
  if (found === null || !mayBeHead(found.line)) return null
  const walk = new LogWalk(signer.publicKey, verifiesHead, true)
  if (walk.take(found.line) !== null || walk.heads !== 1) return null
  return walk.next === tip?.next && walk.chain.prev === tip.prev ? { walk, size: found.size } : null
}

async function lastLine(path: string): Promise<{ line: Buffer; size: number } | null> {
  const handle = await open(path, 'r')
  try {
    const { size } = await handle.stat()
    const length = Math.min(size, WINDOW)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length)
    if (bytesRead !== length || length < 2 || buffer[length - 1] !== NEWLINE) return null
    const before = buffer.lastIndexOf(NEWLINE, length - 2)
    // A line that begins before the window is no head.
    if (before < 0 && length < size) return null
    return { line: buffer.subarray(before + 1, length - 1), size }
  } finally {
    await handle.close()
  }
}
