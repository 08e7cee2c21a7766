import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { visibleLine, visibleText } from './visible.ts'

describe('text of agents on a terminal', () => {
  it('shows escapes, overrides and invisible characters', () => {
    expect(visibleText('\u001b[2Jgone')).toBe('\\e[2Jgone')
    expect(visibleText('a\rb')).toBe('a\\rb')
    expect(visibleText('if (x\u202e\u2066) {')).toBe('if (x<U+202E><U+2066>) {')
    expect(visibleText('pass\u200bword')).toBe('pass<U+200B>word')
    expect(visibleText('\u{e0041}')).toBe('<U+E0041>')
    expect(visibleText('\u009b31m')).toBe('\\x9b31m')
    expect(visibleText('\ud800')).toBe('<U+D800>')
  })

  it('keeps lines as lines and a name on one line', () => {
    expect(visibleText('a\n\tb')).toBe('a\n\tb')
    expect(visibleLine('a\n\tb')).toBe('a\\n\\tb')
  })

  it('leaves ordinary text of any script as it is', () => {
    for (const text of ['naïve café', '日本語', 'עברית', 'Ελληνικά', '👍'])
      expect(visibleLine(text)).toBe(text)
  })

  it('knows every character of Unicode that is invisible or moves others', () => {
    const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/u
    // Prepended marks of Arabic, Syriac and Kaithi numbers are seen.
    const seen = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u
    const through: string[] = []
    for (let code = 0; code <= 0x10ffff; code++) {
      const text = String.fromCodePoint(code)
      if (hidden.test(text) && !seen.test(text) && visibleLine(text) === text) through.push(code.toString(16))
    }
    expect(through).toEqual([])
  })

  it('never lets a control character through', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        expect(visibleLine(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u)
      }),
    )
  })
})
