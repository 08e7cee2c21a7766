// pure
import { type Hunk, textDiff } from './text-diff.ts'

/**
 * The change of a text in pieces that can be taken one by one; null where it cannot be cut: what is no text, is not UTF-8
 * on both sides, or differs too much to be compared. The same two contents always give the same pieces.
 */
export function hunksOf(before: Uint8Array, after: Uint8Array): readonly Hunk[] | null {
  if (!isUtf8(before) || !isUtf8(after)) return null
  const diff = textDiff(before, after)
  return diff.kind === 'text' ? diff.hunks : null
}

/** The text before with these pieces of its change. With all of them it is the text after, byte for byte. */
export function withHunks(before: Uint8Array, hunks: readonly Hunk[], chosen: ReadonlySet<number>): Buffer {
  const lines = linesOf(Buffer.from(before).toString('utf8'))
  const out: string[] = []
  let at = 0
  for (const [index, hunk] of hunks.entries()) {
    const start = hunk.oldStart - 1
    const end = start + hunk.oldLines
    out.push(...lines.slice(at, start))
    out.push(...(chosen.has(index) ? newLines(hunk, lines.slice(start, end)) : lines.slice(start, end)))
    at = end
  }
  out.push(...lines.slice(at))
  return Buffer.from(out.join(''), 'utf8')
}

/** What a hunk makes of the lines that it stands for; those must be the ones that it names. */
function newLines(hunk: Hunk, old: readonly string[]): string[] {
  const out: string[] = []
  let at = 0
  for (const [index, line] of hunk.lines.entries()) {
    const mark = line.slice(0, 1)
    if (mark === '\\') continue
    // Only the last line of a side can be without an end.
    const text = line.slice(1) + (hunk.lines[index + 1]?.startsWith('\\') === true ? '' : '\n')
    if (mark !== '+' && old[at++] !== text) throw new RangeError('The hunk does not fit the text')
    if (mark !== '-') out.push(text)
  }
  if (at !== old.length) throw new RangeError('The hunk does not fit the text')
  return out
}

/** With their ends; the last may have none. */
const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

function isUtf8(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Buffer.from(buffer.toString('utf8'), 'utf8').equals(buffer)
}
