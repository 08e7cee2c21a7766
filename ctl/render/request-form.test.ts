import { expect, it } from 'vitest'
import type { QueuedView } from '../../daemon/contract/engine.ts'
import { editOf, formText, isObeyed } from './request-form.ts'

const VIEW: QueuedView = {
  id: 'r1',
  state: 'queued',
  detail: '',
  queuedAt: '',
  method: 'POST',
  url: 'https://api.test/issues?x=1',
  rule: 'issues',
  headers: [
    ['content-type', 'application/json'],
    ['authorization', 'credential PUZZLED-TOKEN-1'],
    ['cookie', '(11 characters, not shown)'],
    ['idempotency-key', 'puzzled-r1'],
  ],
  bytes: 7,
  sha256: 'x',
  body: '{\n  "a": 1\n}',
  cut: false,
}
const BODY = '{"a":1}'
const form = formText(VIEW, 'b1', BODY)
const edited = (from: string | RegExp, to: string, text = form): unknown =>
  editOf(text.replace(from, to), VIEW, BODY)

it('a form that nobody changed changes nothing, whatever an editor does to its end', () => {
  expect(editOf(form, VIEW, BODY)).toBeNull()
  expect(editOf(`${form}\n`, VIEW, BODY)).toBeNull()
  expect(editOf(`\n${form}`, VIEW, BODY)).toBeNull()
  expect(editOf(formText(VIEW, 'b1', null), VIEW, null)).toBeNull()
})

it('every part can be changed, and only what was changed is told', () => {
  expect(edited('POST https', 'PUT https')).toEqual({ method: 'PUT' })
  expect(edited('issues?x=1', 'notes')).toEqual({ url: 'https://api.test/notes' })
  expect(edited('{"a":1}', '{"a":2}')).toEqual({ body: Buffer.from('{"a":2}') })
  expect(edited('application/json', 'text/plain')).toEqual({
    headers: [{ name: 'content-type', values: ['text/plain'] }],
  })
  expect(edited(/^cookie.*\n/m, '')).toEqual({ headers: [{ name: 'cookie', values: [] }] })
  expect(edited(/^cookie/m, 'accept: a\naccept: b\ncookie')).toEqual({
    headers: [{ name: 'accept', values: ['a', 'b'] }],
  })
})

it('a stand-in for a value that is not shown never becomes the value', () => {
  expect(() => edited(/^cookie: .*$/m, '$&\ncookie: second=1')).toThrow('anew')
  expect(edited(/^authorization: .*$/m, 'authorization: Bearer PUZZLED-TOKEN-1')).toEqual({
    headers: [{ name: 'authorization', values: ['Bearer PUZZLED-TOKEN-1'] }],
  })
})

it('a form that says nothing clear is refused', () => {
  expect(() => editOf('', VIEW, BODY)).toThrow('no method and URL')
  expect(() => edited('content-type: ', 'content-type ')).toThrow('no header')
  expect(() => editOf(`${formText(VIEW, 'b1', null)}text`, VIEW, null)).toThrow('--body FILE')
})

it('knows what editors obey', () => {
  for (const text of [
    '# vim: set modeline:',
    'x\n/* vi:set ts=2 */',
    ' ex: x',
    'vim>700:',
    '-*- mode: x -*-',
  ])
    expect(isObeyed(text)).toBe(true)
  for (const text of [formText(VIEW, 'b', 'body'), 'devi: x', 'an example: x', 'vim is an editor'])
    expect(isObeyed(text)).toBe(false)
})
