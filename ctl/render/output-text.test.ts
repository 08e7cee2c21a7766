import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OutputText } from './output-text.ts'

const show = (...pieces: (string | readonly number[])[]): string => {
  const text = new OutputText()
  return pieces.map((piece) => text.push(Buffer.from(piece as string))).join('') + text.end()
}

it('a character that comes in two pieces is one', () => {
  const bytes = [...Buffer.from('naïve 日本 👍\n')]
  for (let at = 0; at <= bytes.length; at++)
    expect(show(bytes.slice(0, at), bytes.slice(at))).toBe('naïve 日本 👍\n')
  expect(show(...bytes.map((byte) => [byte]))).toBe('naïve 日本 👍\n')
})

it('bytes that are no text are shown as bytes, and what stands beside them as text', () => {
  expect(show([0xff], 'a')).toBe('\\xffa')
  expect(show('ä', [0x80, 0xe6, 0x97], 'b')).toBe('ä\\x80\\xe6\\x97b')
  // Latin-1, an overlong slash, half a surrogate pair, and the end of a character that never came.
  expect(show([0x63, 0x61, 0x66, 0xe9, 0x0a])).toBe('caf\\xe9\n')
  expect(show([0xc0, 0xaf])).toBe('\\xc0\\xaf')
  expect(show([0xed, 0xa0, 0x80])).toBe('\\xed\\xa0\\x80')
  expect(show([0xf0, 0x9f])).toBe('\\xf0\\x9f')
  // This character is one of Unicode's own, and was written.
  expect(show('\ufffd')).toBe('\ufffd')
})

it('nothing moves the cursor, and a line may end as on a terminal', () => {
  expect(show('a\r', '\nb')).toBe('a\nb')
  expect(show('50 %\r60 %')).toBe('50 %\\r60 %')
  expect(show('\u001b[2J')).toBe('\\e[2J')
})

it('where the pieces are cut makes no difference', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 30 }), fc.nat(30), (bytes, cut) => {
      expect(show([...bytes.slice(0, cut)], [...bytes.slice(cut)])).toBe(show([...bytes]))
    }),
  )
})
