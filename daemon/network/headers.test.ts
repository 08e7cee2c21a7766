import { describe, expect, it } from 'vitest'
import { badFraming, requestHeaders, responseHeaders } from './headers.ts'

const names = (headers: readonly (readonly [string, string])[]): string[] => headers.map(([name]) => name)

describe('request headers', () => {
  const sent: [string, string][] = [
    ['Host', 'a'],
    ['Connection', 'close, X-Custom'],
    ['X-Custom', '1'],
    ['Accept', '*/*'],
    ['Authorization', 'Bearer x'],
    ['X-Secret-Data', 'leak'],
    ['X-Forwarded-For', '1.2.3.4'],
    ['X-HTTP-Method-Override', 'PUT'],
    ['Proxy-Authorization', 'x'],
    ['Transfer-Encoding', 'chunked'],
    ['Content-Type', 'a/b'],
  ]
  it('leave by the default list, by the rule or, live, nearly all', () => {
    expect(names(requestHeaders(sent, { allowed: undefined, live: false }))).toEqual([
      'accept',
      'authorization',
      'content-type',
    ])
    expect(names(requestHeaders(sent, { allowed: ['x-secret-data'], live: false }))).toEqual([
      'x-secret-data',
      'content-type',
    ])
    expect(names(requestHeaders(sent, { allowed: undefined, live: true }))).toEqual([
      'accept',
      'authorization',
      'x-secret-data',
      'x-http-method-override',
      'content-type',
    ])
  })
  it('cannot be made to lose their framing by naming it in Connection', () => {
    const tricky: [string, string][] = [
      ['connection', 'content-length, authorization'],
      ['content-length', '1'],
      ['authorization', 'x'],
    ]
    expect(names(requestHeaders(tricky, { allowed: undefined, live: true }))).toEqual([
      'content-length',
      'authorization',
    ])
  })
})

describe('response headers', () => {
  it('say once what stands once, lists in one line, and cookies as often as they like', () => {
    const twice: [string, string][] = [
      ['ETag', 'a'],
      ['Set-Cookie', '1'],
      ['etag', 'b'],
      ['content-encoding', 'identity'],
      ['set-cookie', '2'],
      ['Content-Encoding', 'gzip'],
    ]
    expect(responseHeaders(twice)).toEqual([
      ['ETag', 'a'],
      ['Set-Cookie', '1'],
      ['content-encoding', 'identity, gzip'],
      ['set-cookie', '2'],
    ])
  })

  it('lose what is about the upstream connection', () => {
    const got = names(
      responseHeaders([
        ['connection', 'x-hop'],
        ['x-hop', '1'],
        ['keep-alive', '5'],
        ['alt-svc', 'h3'],
        ['set-cookie', 'a'],
        ['set-cookie', 'b'],
      ]),
    )
    expect(got).toEqual(['set-cookie', 'set-cookie'])
  })
})

/** `name: value` per line, for short tables. */
const parse = (text: string): (readonly [string, string])[] =>
  text
    .split('\n')
    .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)] as const)

describe('framing', () => {
  it.each([
    ['x:1', 'no-host'],
    ['host:a\nHost:b', 'two-hosts'],
    ['host:a\ncontent-length:1\ncontent-length:1', 'two-lengths'],
    ['host:a\ncontent-length:+1', 'two-lengths'],
    ['host:a\ncontent-length:1\ntransfer-encoding:chunked', 'length-and-chunked'],
    ['host:a\ntransfer-encoding:chunked, identity', 'bad-transfer-encoding'],
    ['host:a\ntransfer-encoding:xchunked', 'bad-transfer-encoding'],
    ['host:a\nbad name:x', 'bad-name'],
    ['host:a\ntransfer-encoding:Chunked', undefined],
  ])('%j: %s', (headers, expected) => expect(badFraming(parse(headers))).toBe(expected))
})
