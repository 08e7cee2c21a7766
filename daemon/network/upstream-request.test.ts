import { describe, expect, it } from 'vitest'
import { NetworkDenied } from './denial.ts'
import { encodeHead, framingOf } from './upstream-request.ts'

const HEAD = {
  method: 'POST',
  target: '/a?b',
  authority: 'a.example.com',
  headers: [['accept', '*/*']],
} as const

describe('the head of a request', () => {
  it('is written from its parts, with one framing', () => {
    expect(encodeHead(HEAD, { kind: 'length', bytes: 5 })).toBe(
      'POST /a?b HTTP/1.1\r\nhost: a.example.com\r\naccept: */*\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\n',
    )
    expect(encodeHead(HEAD, { kind: 'chunked' })).toMatch(/\r\ntransfer-encoding: chunked\r\n\r\n$/)
    expect(encodeHead(HEAD, { kind: 'none' })).toMatch(/\r\ncontent-length: 0\r\n\r\n$/)
    expect(encodeHead({ ...HEAD, method: 'GET' }, { kind: 'none' })).not.toMatch(/content-length|chunked/)
    expect(encodeHead({ ...HEAD, upgrade: 'websocket' }, { kind: 'none' })).toContain(
      'connection: upgrade\r\nupgrade: websocket\r\n',
    )
  })

  it('takes nothing about the connection or the framing from the headers', () => {
    const headers = ['Host', 'Connection', 'Content-Length', 'Transfer-Encoding', 'Upgrade'].map(
      (name) => [name, '7'] as const,
    )
    expect(encodeHead({ ...HEAD, headers }, { kind: 'chunked' })).not.toContain('7')
  })

  it.each([
    ['a target that ends the line', { ...HEAD, target: '/ HTTP/1.1\r\nx: y' }],
    ['a target with a blank', { ...HEAD, target: '/a b' }],
    ['a method that is none', { ...HEAD, method: 'GET /' }],
    ['a value that ends the line', { ...HEAD, headers: [['x', 'secret\r\ny: z']] }],
    ['a value with a NUL', { ...HEAD, headers: [['x', 'secret\0']] }],
    ['a value that is no latin1', { ...HEAD, headers: [['x', 'secret\u010d\u010a']] }],
    ['a name that is none', { ...HEAD, headers: [['x y', 'secret']] }],
  ] as const)('is refused for %s, without showing it', (_name, head) => {
    const encode = (): string => encodeHead(head, { kind: 'none' })
    expect(encode).toThrow(NetworkDenied)
    expect(encode).not.toThrow(/secret/)
  })
})

describe('the framing of a body', () => {
  it('is the length that it has, the one that was said, or chunks', () => {
    const said = [['Content-Length', '7']] as const
    expect(framingOf(said, Buffer.from('abc'))).toEqual({ kind: 'length', bytes: 3 })
    expect(framingOf(said, 'stream')).toEqual({ kind: 'length', bytes: 7 })
    expect(framingOf([], 'stream')).toEqual({ kind: 'chunked' })
    expect(framingOf(said, null)).toEqual({ kind: 'none' })
    expect(() => framingOf([['content-length', '7, 7']], 'stream')).toThrow(NetworkDenied)
  })
})
