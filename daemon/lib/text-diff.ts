// pure
import { structuredPatch } from 'diff'

export interface Hunk {
  oldStart: number
  oldLines: number
  newStart: number
  newLines: number
  /** Each line with its mark in front: ` `, `+`, `-` or `\` (no newline at the end of the file). */
  lines: readonly string[]
}

export type TextDiff =
  | { kind: 'text'; hunks: readonly Hunk[] }
  /** Not text, or text that cannot be compared in reasonable time. */
  | { kind: 'binary' | 'too-different'; hunks: readonly [] }

/**
 * Near the beginning: a NUL byte, as git decides, or control characters in what is no UTF-8 either, as in a small
 * compressed file. Text of another encoding has none of those: it is shown, not hidden behind "binary".
 */
export function isBinary(bytes: Uint8Array): boolean {
  const head = bytes.subarray(0, 8000)
  return head.includes(0) || (head.some(isControl) && !isUtf8(head))
}

/** But those that stand in texts: from backspace to carriage return, and escape. */
const isControl = (byte: number): boolean =>
  (byte < 0x20 && (byte < 8 || byte > 13) && byte !== 0x1b) || byte === 0x7f

/** A character that is cut off at the end is no fault. */
function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    // What TextDecoder throws says no more than that.
    return false
  }
}

/** More edits than this are a rewrite, and nobody reads the diff of a rewrite; it also bounds the quadratic search. */
const MAX_EDITS = 5000
const TIME_LIMIT_MS = 1000

/** Lines that changed between two contents, with `context` lines around them. */
export function textDiff(before: Uint8Array, after: Uint8Array, context = 3): TextDiff {
  if (isBinary(before) || isBinary(after)) return { kind: 'binary', hunks: [] }
  const patch = structuredPatch('', '', decode(before), decode(after), '', '', {
    context,
    maxEditLength: MAX_EDITS,
    timeout: TIME_LIMIT_MS,
  })
  return patch === undefined ? { kind: 'too-different', hunks: [] } : { kind: 'text', hunks: patch.hunks }
}

/**
 * The same for programs: each line is bytes, a character for each. Whatever cannot be compared in reasonable time is taken away
 * as a whole and put there anew, so that there always is a diff that says everything.
 */
export function exactDiff(before: Uint8Array, after: Uint8Array): readonly Hunk[] {
  const [old, now] = [latin1(before), latin1(after)]
  const patch = structuredPatch('', '', old, now, '', '', {
    context: 3,
    maxEditLength: MAX_EDITS,
    timeout: TIME_LIMIT_MS,
  })
  return patch?.hunks ?? [rewritten(old, now)]
}

function rewritten(before: string, after: string): Hunk {
  const old = linesOf(before, '-')
  const now = linesOf(after, '+')
  const counted = (lines: readonly string[]): number => lines.filter((line) => !line.startsWith('\\')).length
  return { oldStart: 1, oldLines: counted(old), newStart: 1, newLines: counted(now), lines: [...old, ...now] }
}

function linesOf(text: string, mark: '-' | '+'): string[] {
  if (text === '') return []
  const lines = text.split('\n').map((line) => `${mark}${line}`)
  return text.endsWith('\n') ? lines.slice(0, -1) : [...lines, '\\ No newline at end of file']
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')

/** Latin-1 keeps every byte apart, so that two different invalid sequences never look equal. */
function decode(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('utf8')
  return Buffer.from(text, 'utf8').equals(buffer) ? text : buffer.toString('latin1')
}

/** `@@ -1,3 +1,4 @@` */
export const hunkHeader = ({ oldStart, oldLines, newStart, newLines }: Hunk): string =>
  `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`

/** An empty range begins at the line before it, as diff and git have it. */
const range = (start: number, lines: number): string =>
  lines === 1 ? `${start}` : `${lines === 0 ? start - 1 : start},${lines}`
