import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnswerParser, type AnswerSink, BadAnswer } from './answer-parser.ts'
import type { Headers } from './request-nature.ts'

interface Seen {
  status?: number
  headers?: Headers
  body: string
  trailers?: Headers
  upgraded?: string
}

const EXPECTED = { head: false, upgrade: false, headerBytes: 1_000 }

function read(
  pieces: readonly string[],
  expected: Partial<typeof EXPECTED> = {},
): { seen: Seen; parser: AnswerParser } {
  const seen: Seen = { body: '' }
  const sink: AnswerSink = {
    head: (status, headers) => Object.assign(seen, { status, headers }),
    data: (bytes) => {
      seen.body += bytes.toString('latin1')
    },
    end: (trailers) => {
      seen.trailers = trailers
    },
    upgrade: (_headers, rest) => {
      seen.upgraded = rest.toString('latin1')
    },
  }
  const parser = new AnswerParser({ ...EXPECTED, ...expected }, sink)
  for (const piece of pieces) parser.push(Buffer.from(piece, 'latin1'))
  return { seen, parser }
}

const OK = 'HTTP/1.1 200 OK\r\n'
const ANSWERS: Readonly<Record<string, [text: string, status: number, body: string]>> = {
  'a length': [`${OK}Content-Length: 5\r\nX-A:  b \t\r\n\r\nhello`, 200, 'hello'],
  'no length at all': ['HTTP/1.1 204 No Content\r\n\r\n', 204, ''],
  'a length of nothing': [`${OK}content-length: 0\r\n\r\n`, 200, ''],
  'a longer nothing': [`${OK}content-length: 00\r\n\r\n`, 200, ''],
  'no reason phrase': ['HTTP/1.1 304\r\ncontent-length: 9\r\n\r\n', 304, ''],
  chunks: [`${OK}transfer-encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n`, 200, 'hello'],
  'chunks and trailers': [
    `${OK}transfer-encoding: chunked\r\n\r\n05 \r\nhello\r\n000\r\nX-Sum: 1\r\nx-b: 2\r\n\r\n`,
    200,
    'hello',
  ],
  'an answer to come': [
    `HTTP/1.1 103 Early\r\nlink: x\r\n\r\n${OK}content-length: 5\r\n\r\nhello`,
    200,
    'hello',
  ],
}

describe('an answer with', () => {
  it.each(Object.entries(ANSWERS))('%s is read alike, however it is cut', (_name, [text, status, body]) => {
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 6 }), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), text.length]
        const { seen, parser } = read(at.slice(1).map((to, n) => text.slice(at[n], to)))
        expect([seen.status, seen.body, seen.trailers !== undefined]).toEqual([status, body, true])
        expect(parser.reusable).toBe(true)
      }),
    )
  })

  it('names in one spelling, values without the blanks around them, and trailers apart', () => {
    expect(read([ANSWERS['a length']?.[0] ?? '']).seen.headers).toEqual([
      ['content-length', '5'],
      ['x-a', 'b'],
    ])
    expect(read([ANSWERS['chunks and trailers']?.[0] ?? '']).seen.trailers).toEqual([
      ['x-sum', '1'],
      ['x-b', '2'],
    ])
  })

  it('no length ends with its connection, which is not used again', () => {
    const { seen, parser } = read([`${OK}\r\nhel`, 'lo'])
    expect(seen.trailers).toBeUndefined()
    parser.close()
    expect([seen.body, seen.trailers, parser.reusable]).toEqual(['hello', [], false])
  })

  it('a body that the method forbids has none', () => {
    expect(read([`${OK}content-length: 5\r\n\r\n`], { head: true }).parser.reusable).toBe(true)
  })

  it.each([
    ['bytes behind it', `${OK}content-length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n`],
    ['the wish to close', `${OK}content-length: 1\r\nconnection: x, Close\r\n\r\nx`],
    ['an older version', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx'],
  ])('%s is the last of its connection', (_name, text) => {
    const { seen, parser } = read([text])
    expect([seen.body, parser.done, parser.reusable]).toEqual(['x', true, false])
  })

  it('another protocol is handed over with what came behind it, only where it was asked for', () => {
    const text = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\nframes'
    expect(read([text], { upgrade: true }).seen.upgraded).toBe('frames')
    expect(() => read([text])).toThrow(BadAnswer)
  })
})

it('a length where there is no body is not passed on, and nothing follows on the connection', () => {
  for (const header of ['content-length: 5', 'transfer-encoding: chunked']) {
    const { seen, parser } = read([`HTTP/1.1 204 No Content\r\n${header}\r\nx-a: 1\r\n\r\n`])
    expect(seen).toMatchObject({ status: 204, body: '', trailers: [] })
    expect(seen.headers?.some(([name]) => name === 'content-length')).toBe(false)
    expect([parser.done, parser.reusable]).toEqual([true, false])
  }
  expect(read(['HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n']).parser.reusable).toBe(true)
})

describe('refused is', () => {
  it.each([
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n'],
    ['another version', 'HTTP/2.0 200 OK\r\n\r\n'],
    ['a status that is none', 'HTTP/1.1 099 OK\r\n\r\n'],
    ['two lengths', `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\nx`],
    ['a list of lengths', `${OK}content-length: 1, 1\r\n\r\nx`],
    ['a signed length', `${OK}content-length: +1\r\n\r\nx`],
    ['a length and chunks', `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`],
    ['chunks of an older version', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['another encoding', `${OK}transfer-encoding: gzip, chunked\r\n\r\n`],
    ['a folded line', `${OK}x-a: b\r\n c\r\n\r\n`],
    ['a blank before the colon', `${OK}content-length : 1\r\n\r\nx`],
    ['a header without a colon', `${OK}content-length\r\n\r\n`],
    ['a bare line feed', `${OK}x: a\ncontent-length: 0\r\n\r\n`],
    ['nothing but bare line feeds, at once', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['a bare carriage return', `${OK}x: a\rset-cookie: b\r\ncontent-length: 0\r\n\r\n`],
    ['a NUL', `${OK}x: a\x00\r\ncontent-length: 0\r\n\r\n`],
    ['a form feed at an end', `${OK}x: a\x0c\r\ncontent-length: 0\r\n\r\n`],
    ['a chunk without a size', `${OK}transfer-encoding: chunked\r\n\r\n;x\r\n`],
    ['a size of another kind', `${OK}transfer-encoding: chunked\r\n\r\n0x1\r\nx\r\n`],
    ['a chunk that is longer than its size', `${OK}transfer-encoding: chunked\r\n\r\n1\r\nxy\r\n`],
    ['extensions without end', `${OK}transfer-encoding: chunked\r\n\r\n1;${'x'.repeat(2_000)}`],
    ['headers without end', `${OK}x: ${'x'.repeat(2_000)}`],
    ['trailers without end', `${OK}transfer-encoding: chunked\r\n\r\n0\r\nx: ${'x'.repeat(2_000)}`],
    ['promises without end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(50)],
  ])('%s', (_name, text) => {
    expect(() => read([text])).toThrow(BadAnswer)
  })

  it.each([
    ['a head', OK],
    ['a length', `${OK}content-length: 5\r\n\r\nhel`],
    ['chunks', `${OK}transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n`],
  ])('%s that breaks off', (_name, text) => {
    expect(() => read([text]).parser.close()).toThrow(/broke off/)
  })
})
