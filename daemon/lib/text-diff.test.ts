import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { hunkHeader, isBinary, textDiff } from './text-diff.ts'

const of = (before: string, after: string) => textDiff(Buffer.from(before), Buffer.from(after))
const shown = (before: string, after: string): string[] =>
  of(before, after).hunks.flatMap((hunk) => [hunkHeader(hunk), ...hunk.lines])

describe('the lines that changed', () => {
  it('are what diff -u prints', () => {
    expect(shown('a\nb\nc\n', 'a\nB\nc\n')).toEqual(['@@ -1,3 +1,3 @@', ' a', '-b', '+B', ' c'])
    expect(shown('', 'new\n')).toEqual(['@@ -0,0 +1 @@', '+new'])
    expect(shown('old\n', '')).toEqual(['@@ -1 +0,0 @@', '-old'])
    expect(shown('a', 'a\n')).toEqual(['@@ -1 +1 @@', '-a', '\\ No newline at end of file', '+a'])
  })

  it('are nothing when nothing changed', () =>
    expect(of('same\n', 'same\n')).toEqual({ kind: 'text', hunks: [] }))

  it('are far apart in hunks of their own', () => {
    const lines = Array.from({ length: 40 }, (_, at) => `${at}`)
    const changed = lines.map((line) => (line === '3' || line === '33' ? `${line}!` : line))
    expect(of(`${lines.join('\n')}\n`, `${changed.join('\n')}\n`).hunks).toHaveLength(2)
  })

  it('are not looked for in binary files', () => {
    expect(textDiff(Buffer.from([1, 0, 2]), Buffer.from('text'))).toEqual({ kind: 'binary', hunks: [] })
  })

  it('are not looked for in a compressed file, however small', () => {
    const objects = Array.from({ length: 200 }, (_, at) => {
      const tree = createHash('sha1').update(String(at)).digest('hex')
      return deflateSync(`commit 99\0tree ${tree}\nauthor A <a@example.com> 1700000000 +0000\n\nsubject\n`, {
        level: 1,
      })
    })
    const tricky = objects.filter((object) => !object.includes(0))
    expect(tricky.length).toBeGreaterThan(20)
    expect(tricky.filter((object) => textDiff(object, object).kind !== 'binary')).toEqual([])
  })

  it('are shown in every encoding of text, colours and form feeds included', () => {
    for (const text of ['\x1b[1mbold\x1b[0m\f\b', '\x01 in ASCII', `${'a'.repeat(7999)}\u{1f600}\x01`])
      expect(isBinary(Buffer.from(text)), JSON.stringify(text)).toBe(false)
    expect(isBinary(Buffer.from('Gr\xfc\xdfe\r\n', 'latin1'))).toBe(false)
  })

  it('tell invalid UTF-8 sequences apart', () => {
    expect(textDiff(Buffer.from([0xff, 10]), Buffer.from([0xfe, 10])).hunks).toHaveLength(1)
  })

  it('are given up when everything is different', () => {
    const many = (mark: string): string =>
      Array.from({ length: 30_000 }, (_, at) => `${mark}${at}\n`).join('')
    expect(of(many('a'), many('b')).kind).toBe('too-different')
  })
})
