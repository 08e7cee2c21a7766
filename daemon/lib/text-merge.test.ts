import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mergeText } from './text-merge.ts'

const merge = (ancestor: string, ours: string, theirs: string): string => {
  const merged = mergeText(Buffer.from(ancestor), Buffer.from(ours), Buffer.from(theirs))
  if (merged.kind === 'merged') return merged.bytes.toString()
  return merged.kind === 'overlap' ? `overlap at ${merged.line}` : merged.kind
}
const LINES = ['1\n', '2\n', '3\n', '4\n', '5\n', '6\n']
const with_ = (at: number, text: string): string => LINES.toSpliced(at - 1, 1, text).join('')
const PLAIN = LINES.join('')

/** What one side did to each line. Every line is unlike all others, so that there is one way to compare the texts. */
const acts = fc.array(fc.constantFrom(...Array(15).fill('keep'), 'drop', 'replace', 'insert', 'same'), {
  minLength: LINES.length,
  maxLength: LINES.length,
})
const edited = (what: readonly string[], side: string): string[] =>
  LINES.flatMap((line, at) => {
    if (what[at] === 'drop') return []
    if (what[at] === 'insert') return [line, `${side} ${line}`]
    if (what[at] === 'same') return [`both ${line}`]
    return [what[at] === 'replace' ? `${side} ${line}` : line]
  })

describe('mergeText', () => {
  it('takes what either side changed', () => {
    expect(merge(PLAIN, with_(2, 'ours\n'), with_(5, 'theirs\n'))).toBe('1\nours\n3\n4\ntheirs\n6\n')
    expect(merge(PLAIN, `0\n${PLAIN}`, `${PLAIN}7\n`)).toBe(`0\n${PLAIN}7\n`)
    expect(merge(PLAIN, with_(1, ''), with_(6, ''))).toBe('2\n3\n4\n5\n')
    expect(merge(PLAIN, PLAIN, 'all new\n')).toBe('all new\n')
    expect(merge(PLAIN, with_(3, 'same\n'), with_(3, 'same\n'))).toBe(with_(3, 'same\n'))
  })

  it('names the line at which both get in each other’s way, neighbours included', () => {
    expect(merge(PLAIN, with_(3, 'ours\n'), with_(3, 'theirs\n'))).toBe('overlap at 3')
    expect(merge(PLAIN, with_(3, 'ours\n'), with_(4, 'theirs\n'))).toBe('overlap at 3')
    expect(merge(PLAIN, `${PLAIN}ours\n`, `${PLAIN}theirs\n`)).toBe('overlap at 7')
    expect(merge(PLAIN, with_(6, '6'), `${PLAIN}7\n`)).toBe('overlap at 6')
    expect(merge('', 'ours\n', 'theirs\n')).toBe('overlap at 1')
  })

  it('keeps every byte, and leaves what is not text alone', () => {
    const odd = Buffer.from([0xff, 0xfe, 0x0d, 0x0a])
    const merged = mergeText(
      Buffer.concat([odd, Buffer.from(PLAIN)]),
      Buffer.concat([odd, Buffer.from(with_(2, 'ours'))]),
      Buffer.concat([odd, Buffer.from(with_(6, 'theirs'))]),
    )
    expect(merged).toMatchObject({ kind: 'merged' })
    expect(merged.kind === 'merged' && merged.bytes.subarray(0, 4).equals(odd)).toBe(true)
    expect(merge('a\n', 'b\n', 'c\0\n')).toBe('binary')
  })

  it('gives up on a rewrite', () => {
    const many = (mark: string): string => Array.from({ length: 6000 }, (_, n) => `${mark}${n}\n`).join('')
    expect(merge(many('a'), many('b'), many('c'))).toBe('too-different')
  })

  it('never merges what git merge-file calls a conflict, and merges as it does elsewhere', () => {
    const folder = mkdtempSync(join(tmpdir(), 'merge-'))
    const at = (name: string): string => join(folder, name)
    try {
      fc.assert(
        fc.property(acts, acts, (left, right) => {
          const [ancestor, ours, theirs] = [LINES, edited(left, 'ours'), edited(right, 'theirs')]
          const merged = merge(ancestor.join(''), ours.join(''), theirs.join(''))
          if (merged.startsWith('overlap')) return
          for (const [name, text] of Object.entries({ ancestor, ours, theirs }))
            writeFileSync(at(name), text.join(''))
          // Throws where git finds a conflict.
          execFileSync('git', ['merge-file', '-q', at('ours'), at('ancestor'), at('theirs')])
          expect(readFileSync(at('ours'), 'utf8')).toBe(merged)
        }),
        { numRuns: 150 },
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
