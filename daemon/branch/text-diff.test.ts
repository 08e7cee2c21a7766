import { describe, expect, it } from 'vitest'
import { isBinary, textDiff } from './text-diff.ts'

const bytes = (text: string): Buffer => Buffer.from(text)

describe('textDiff', () => {
  it('gives unified hunks', () => {
    const before = Array.from({ length: 30 }, (_, line) => `line ${line}\n`)
    const after = before.with(2, 'second\n').with(25, 'later\n')
    const diff = textDiff(bytes(before.join('')), bytes(after.join('')))
    expect(diff.kind === 'text' && diff.hunks.map((hunk) => [hunk.oldStart, hunk.oldLines])).toEqual([
      [1, 6],
      [23, 7],
    ])
    expect(diff.kind === 'text' && diff.hunks[0]?.lines).toEqual([
      ' line 0',
      ' line 1',
      '-line 2',
      '+second',
      ' line 3',
      ' line 4',
      ' line 5',
    ])
  })

  it('shows a file that comes or goes as lines of one side', () => {
    const added = textDiff(null, bytes('a\nb'))
    expect(added.kind === 'text' && added.hunks[0]?.lines).toEqual([
      '+a',
      '+b',
      '\\ No newline at end of file',
    ])
    const removed = textDiff(bytes('a\n'), null)
    expect(removed.kind === 'text' && removed.hunks[0]?.lines).toEqual(['-a'])
    expect(textDiff(null, null)).toEqual({ kind: 'text', hunks: [] })
  })

  it('tells binary from text', () => {
    expect(textDiff(bytes('a'), Buffer.from([1, 0, 2]))).toEqual({ kind: 'binary' })
    expect(isBinary(Buffer.from([0xff, 0xfe]))).toBe(true)
    expect(isBinary(bytes('ünïcode \u001b[31m'))).toBe(false)
    expect(isBinary(Buffer.alloc(0))).toBe(false)
  })

  it('says what it leaves out', () => {
    const limits = { bytes: 100, edits: 3, milliseconds: 1000 }
    expect(textDiff(null, Buffer.alloc(101, 0x61), limits)).toMatchObject({ kind: 'omitted' })
    expect(textDiff(bytes('a\nb\nc\nd\n'), bytes('e\nf\ng\nh\n'), limits)).toMatchObject({ kind: 'omitted' })
  })
})
