// pure
import { diffArrays } from 'diff'

export type TextMerge =
  | { kind: 'merged'; bytes: Buffer }
  /** Both sides changed the same or neighbouring lines; the first of them, counted from 1, in the ancestor. */
  | { kind: 'overlap'; line: number }
  /** Not text, or text that cannot be compared in reasonable time. */
  | { kind: 'binary' | 'too-different' }

/** Lines `from` to before `to` of the ancestor have become `lines`. */
interface Edit {
  from: number
  to: number
  lines: readonly string[]
}

const LIMITS = { maxEditLength: 5000, timeout: 1000 } as const

/**
 * Three-way merge by whole lines. What one side changed is taken where the other left the lines and their neighbours
 * alone, as git does it; the same edit on both sides is one edit. Bytes that are no UTF-8 pass unchanged.
 */
export function mergeText(ancestor: Uint8Array, ours: Uint8Array, theirs: Uint8Array): TextMerge {
  if ([ancestor, ours, theirs].some((bytes) => bytes.includes(0))) return { kind: 'binary' }
  const before = linesOf(ancestor)
  const left = editsOf(before, linesOf(ours))
  const right = editsOf(before, linesOf(theirs))
  if (left === undefined || right === undefined) return { kind: 'too-different' }
  const edits = combine(left, right)
  if (typeof edits === 'number') return { kind: 'overlap', line: edits + 1 }
  return { kind: 'merged', bytes: Buffer.from(apply(before, edits).join(''), 'latin1') }
}

/** With their newlines, so that a missing one at the end is a difference. Latin-1 keeps every byte apart. */
const linesOf = (bytes: Uint8Array): string[] =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    .toString('latin1')
    .split(/(?<=\n)/)
    .filter((line) => line !== '')

function editsOf(before: string[], after: string[]): Edit[] | undefined {
  const parts = diffArrays(before, after, LIMITS)
  if (parts === undefined) return undefined
  const edits: { from: number; to: number; lines: string[] }[] = []
  let at = 0
  let open = false
  for (const { added, removed, value } of parts) {
    if (!added && !removed) {
      at += value.length
      open = false
      continue
    }
    if (!open) edits.push({ from: at, to: at, lines: [] })
    open = true
    const edit = edits.at(-1)
    if (added) edit?.lines.push(...value)
    else {
      at += value.length
      if (edit !== undefined) edit.to = at
    }
  }
  return edits
}

/** Both sides' edits in order, or the ancestor's line at which they get in each other's way. */
function combine(left: readonly Edit[], right: readonly Edit[]): Edit[] | number {
  const all: Edit[] = []
  let [l, r] = [0, 0]
  for (;;) {
    const [a, b] = [left[l], right[r]]
    if (a === undefined || b === undefined) return [...all, ...left.slice(l), ...right.slice(r)]
    if (same(a, b)) {
      all.push(a)
      l++
      r++
    } else if (a.to < b.from) {
      all.push(a)
      l++
    } else if (b.to < a.from) {
      all.push(b)
      r++
    } else return Math.min(a.from, b.from)
  }
}

const same = (a: Edit, b: Edit): boolean =>
  a.from === b.from &&
  a.to === b.to &&
  a.lines.length === b.lines.length &&
  a.lines.every((line, index) => line === b.lines[index])

function apply(before: readonly string[], edits: readonly Edit[]): string[] {
  const lines: string[] = []
  let at = 0
  for (const { from, to, lines: fresh } of edits) {
    for (; at < from; at++) lines.push(before[at] ?? '')
    lines.push(...fresh)
    at = to
  }
  return [...lines, ...before.slice(at)]
}
