import { escape as quoted } from 'node:querystring'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { spellings } from './spellings.ts'

const SECRET = 'sk-live/abc+12<3&"\'=='

it('a plain token has few, and each of them once', () => {
  const all = spellings('sk-live-0123456789abcdef')
  expect(new Set(all).size).toBe(all.length)
  expect(all.length).toBeLessThan(10)
})

it.each([
  ['as it is', SECRET],
  ['by a browser', encodeURIComponent(SECRET)],
  ['by querystring', quoted(SECRET)],
  ['percent, strict', encodeURIComponent(SECRET).replaceAll("'", '%27')],
  ['percent, in small digits', encodeURIComponent(SECRET).toLowerCase()],
  ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
  ['in JSON of PHP', `sk-live\\/abc+12<3&\\"'==`],
  ['in JSON of Go', `sk-live/abc+12\\u003c3\\u0026\\"'==`],
  ['in JSON of Gson', `sk-live/abc+12\\u003c3\\u0026\\"\\u0027\\u003d\\u003d`],
  ['in HTML', 'sk-live/abc+12&lt;3&amp;&quot;&#39;=='],
  ['in HTML of Python', 'sk-live/abc+12&lt;3&amp;&quot;&#x27;=='],
  ['in HTML of Go', 'sk-live/abc&#43;12&lt;3&amp;&#34;&#39;=='],
  ['in hex', Buffer.from(SECRET).toString('hex').toUpperCase()],
])('one is found that was written %s', (_how, text) => {
  expect(spellings(SECRET)).toContain(text)
})

it('.NET codes a plus, which is in many tokens', () => {
  expect(spellings('abc+12345')).toContain('abc\\u002B12345')
})

it('one is found in the base64 of any text around it', () => {
  const text = fc.string({ maxLength: 10 })
  fc.assert(
    fc.property(text, text, fc.constantFrom('base64', 'base64url'), (before, behind, form) => {
      const around = Buffer.from(`${before}${SECRET}${behind}`).toString(form as 'base64')
      expect(spellings(SECRET).some((spelling) => around.includes(spelling))).toBe(true)
    }),
  )
  // The control: what is looked for is not in the base64 of something else.
  const other = Buffer.from('Bearer sk-live/another secret').toString('base64')
  expect(spellings(SECRET).some((spelling) => other.includes(spelling))).toBe(false)
})

it('one that is not ASCII is found as the bytes that it was sent as and as UTF-8', () => {
  const all = spellings('geheimnüsse')
  for (const encoding of ['latin1', 'utf8'] as const)
    expect(all).toContain(Buffer.from('geheimnüsse', encoding).toString('latin1'))
})
