// pure
import { Buffer, isUtf8 } from 'node:buffer'
import { structuredPatch } from 'diff'

/** Text diffs for people: bounded in time and size, and honest about what is not shown. */

export interface TextHunk {
  oldStart: number
  oldLines: number
  newStart: number
  newLines: number
  /** Each begins with ` `, `-`, `+` or `\`. Not sanitised: the renderer is. */
  lines: readonly string[]
}

export type TextDiff =
  | { kind: 'text'; hunks: readonly TextHunk[] }
  | { kind: 'binary' }
  /** Not compared line by line, and why. */
  | { kind: 'omitted'; reason: string }

export interface TextDiffLimits {
  /** Bytes of either side. */
  bytes: number
  /** Lines that differ. */
  edits: number
  milliseconds: number
}

export const DEFAULT_LIMITS: TextDiffLimits = { bytes: 1_000_000, edits: 5_000, milliseconds: 500 }

/** Like git: a NUL in the first 8000 bytes; and besides, what is not UTF-8 cannot be shown as text faithfully. */
export const isBinary = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 8000)).includes(0) || !isUtf8(bytes)

/** Unified hunks with three lines of context. A side that does not exist is null. */
export function textDiff(
  before: Uint8Array | null,
  after: Uint8Array | null,
  limits: TextDiffLimits = DEFAULT_LIMITS,
): TextDiff {
  const sides = [before ?? new Uint8Array(0), after ?? new Uint8Array(0)] as const
  if (sides.some((side) => side.length > limits.bytes))
    return { kind: 'omitted', reason: `larger than ${limits.bytes} bytes` }
  if (sides.some(isBinary)) return { kind: 'binary' }
  const [old, fresh] = sides.map((side) => Buffer.from(side).toString('utf8'))
  const patch = structuredPatch('', '', old ?? '', fresh ?? '', '', '', {
    context: 3,
    maxEditLength: limits.edits,
    timeout: limits.milliseconds,
  })
  if (patch === undefined)
    return {
      kind: 'omitted',
      reason: `more than ${limits.edits} lines differ, or it took too long to compare`,
    }
  return { kind: 'text', hunks: patch.hunks }
}
