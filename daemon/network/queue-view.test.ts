import { describe, expect, it } from 'vitest'
import type { QueuedRequest } from './queue-record.ts'
import { viewOf } from './queue-view.ts'

const request = (headers: readonly (readonly [string, string])[] = [], size = 7): QueuedRequest => ({
  id: 'r1',
  queuedAt: 'then',
  updatedAt: 'then',
  state: 'queued',
  detail: '',
  response: undefined,
  edits: 0,
  request: {
    method: 'POST',
    scheme: 'https',
    host: 'api.example.com',
    port: 8443,
    target: '/issues?x=1',
    headers,
    body: { size, sha256: 'x' },
    rule: 'issues',
  },
})

describe('a queued request for people', () => {
  it('has its place, and its JSON in lines', () => {
    const view = viewOf(request([], 9), Buffer.from('{"a":[1]}'), [])
    expect(view).toMatchObject({ method: 'POST', url: 'https://api.example.com:8443/issues?x=1', cut: false })
    expect(view.body).toBe('{\n  "a": [\n    1\n  ]\n}')
  })

  it('shows credentials as references and other secrets not at all', () => {
    const headers = [
      ['authorization', 'Bearer PUZZLED-TOKEN-1'],
      ['cookie', 'session=abc'],
      ['accept', '*/*'],
    ] as const
    expect(viewOf(request(headers), Buffer.alloc(0), ['PUZZLED-TOKEN-1']).headers).toEqual([
      ['authorization', 'credential PUZZLED-TOKEN-1'],
      ['cookie', '(11 characters, not shown)'],
      ['accept', '*/*'],
    ])
  })

  it('makes deceiving characters visible and describes what is no text', () => {
    expect(viewOf(request([], 10), Buffer.from('a\x1b[2Jb\u202ec\r'), []).body).toBe(
      'a\\u{1b}[2Jb\\u{202e}c\\u{d}',
    )
    expect(viewOf(request([], 2), Buffer.from([0xff, 0xfe]), []).body).toBe('(2 bytes that are no text)')
    expect(viewOf(request([], 20_000), Buffer.alloc(20_000, 'x'), []).cut).toBe(true)
  })

  it('shows the beginning of a body that was read in part, also where it was cut in a character', () => {
    const part = Buffer.from('{"a": "€').subarray(0, -1)
    expect(viewOf(request([], 1_000_000), part, [])).toMatchObject({ body: '{"a": "', cut: true })
    expect(viewOf(request([], part.length), part, []).body).toContain('no text')
  })
})
