import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonText } from './json.ts'

it('a document means the same and holds nothing that a terminal obeys', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const text = jsonText({ [name]: [name] })
      expect(JSON.parse(text)).toEqual({ [name]: [name] })
      expect(text.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u200b\u2028\u2029\u{e0041}]/u)
    }),
  )
  expect(jsonText({ a: 'é日\u009b\u202e\u{e0041}' })).toBe('{"a":"é日\\u009b\\u202e\\udb40\\udc41"}\n')
})
