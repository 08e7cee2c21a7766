import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SMUGGLING } from '../../test/fixtures/smuggling.ts'
import { NetworkDenied } from './denial.ts'
import { type RequestHead, RequestParser } from './request-parser.ts'

const LIMITS = { headerBytes: 1_000, headerCount: 10 }

interface Seen {
  head: RequestHead
  body: string
  ended: boolean
}

/** Every request of the connection up to the first refusal, and that. */
function read(pieces: readonly Buffer[]): { seen: Seen[]; refused: number | undefined; rest: string } {
  const seen: Seen[] = []
  const parser = new RequestParser(LIMITS, {
    head: (head) => void seen.push({ head, body: '', ended: false }),
    data: (bytes) => {
      const last = seen.at(-1)
      if (last !== undefined) last.body += bytes.toString('latin1')
    },
    end: () => Object.assign(seen.at(-1) ?? {}, { ended: true }),
  })
  try {
    for (const piece of pieces) {
      parser.push(piece)
      for (let asked = -1; parser.ended && asked !== seen.length; ) {
        asked = seen.length
        // Nothing is read behind these: the connection is not HTTP/1.1 any more.
        if (seen.at(-1)?.head.method === 'CONNECT') return { seen, refused: undefined, rest: 'a tunnel' }
        parser.next()
      }
    }
  } catch (error) {
    if (!(error instanceof NetworkDenied)) throw error
    return { seen, refused: error.status, rest: '' }
  }
  return { seen, refused: undefined, rest: parser.take().toString('latin1') }
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1')
const one = (text: string): ReturnType<typeof read> => read([bytesOf(text)])
const HOST = 'Host: a.example.com\r\n'

/** The same bytes in pieces that end at the places given. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...ends, bytes.length].map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end))
}

const PLAIN: Readonly<Record<string, [text: string, body: string]>> = {
  'no body': [`GET /a?b HTTP/1.1\r\n${HOST}X-A:  b \t\r\n\r\n`, ''],
  'a body of a length': [`POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`, 'hello'],
  'a body of nothing': [`POST / HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`, ''],
  chunks: [
    `PUT / HTTP/1.1\r\n${HOST}Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n`,
    'hello',
  ],
  'chunks and trailers': [
    `PUT / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nB: 2\r\n\r\n`,
    'hello',
  ],
  'an empty line in front': [`\r\n\r\nGET / HTTP/1.1\r\n${HOST}\r\n`, ''],
  'the old version': [`GET / HTTP/1.0\r\n${HOST}\r\n`, ''],
}

describe('a request with', () => {
  it.each(Object.entries(PLAIN))(
    '%s is read alike, however it is cut and repeated',
    (_name, [text, body]) => {
      fc.assert(
        fc.property(
          fc.array(fc.nat(1_000), { maxLength: 8 }),
          fc.integer({ min: 1, max: 3 }),
          (places, times) => {
            const { seen, refused, rest } = read(cut(bytesOf(text.repeat(times)), places))
            expect([refused, rest]).toEqual([undefined, ''])
            expect(seen.map((request) => [request.body, request.ended])).toEqual(
              Array.from({ length: times }, () => [body, true]),
            )
          },
        ),
      )
    },
  )

  it('headers is read into lower-case names and bare values', () => {
    const [request] = one(`GET /a?b HTTP/1.1\r\n${HOST}X-A:  b \t\r\nEmpty:\r\n\r\n`).seen
    expect(request?.head).toMatchObject({
      method: 'GET',
      target: '/a?b',
      keepAlive: true,
      hasBody: false,
      headers: [
        ['host', 'a.example.com'],
        ['x-a', 'b'],
        ['empty', ''],
      ],
    })
  })

  it('a word about its connection is understood', () => {
    const about = (headers: string, version = '1.1') =>
      one(`GET / HTTP/${version}\r\n${HOST}${headers}\r\n`).seen[0]?.head
    expect(about('Connection: x, Close\r\n')?.keepAlive).toBe(false)
    expect(about('Connection: keep-alive\r\n', '1.0')?.keepAlive).toBe(false)
    expect(about('Connection: Upgrade\r\nUpgrade: WebSocket\r\n')?.upgrade).toBe('websocket')
    expect(about('Upgrade: websocket\r\n')?.upgrade).toBeUndefined()
    expect(about('Expect: 100-Continue\r\n')?.expect).toBe('100-continue')
  })
})

describe('a connection', () => {
  it('hands over what comes behind CONNECT, which need not name its host twice', () => {
    const parser = new RequestParser(LIMITS, {
      head: () => undefined,
      data: () => undefined,
      end: () => undefined,
    })
    parser.push(bytesOf('CONNECT a.example.com:443 HTTP/1.0\r\n\r\n\x16\x03'))
    expect([parser.ended, parser.take().toString('latin1')]).toEqual([true, '\x16\x03'])
  })

  it.each([
    ['GET / HTTP/1.1\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`, 400],
    [`GET / HTTP/1.1\r\n${HOST} folded: x\r\n\r\n`, 400],
    [`POST / HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    [`POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    [`POST / HTTP/1.1\r\n${HOST}Content-Length: 1234567890123456\r\n\r\n`, 400],
    [`POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n`, 400],
    [`CONNECT a.example.com:443 HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`, 400],
    [`GET / HTTP/1.1\r\n${HOST}${'a: b\r\n'.repeat(10)}\r\n`, 431],
    [`GET / HTTP/1.1\r\n${HOST}a: ${'b'.repeat(1_000)}`, 431],
    ['\x16\x03\x01\x02', 400],
    ['GET / HTTP/1.1\nHost: a', 400],
    ['\r\n'.repeat(5), 400],
  ])('that says %j is refused at once', (text, status) => {
    expect(one(text).refused).toBe(status)
  })

  it('that is hostile says the same, however it is cut', () => {
    for (const { name, bytes } of SMUGGLING)
      fc.assert(
        fc.property(fc.array(fc.nat(1_000), { maxLength: 6 }), (places) => {
          const [whole, pieces] = [one(bytes.toString('latin1')), read(cut(bytes, places))]
          const shown = ({ seen }: typeof whole) =>
            seen.filter((request) => request.ended).map(({ head, body }) => [head, body])
          expect([shown(pieces), pieces.refused], name).toEqual([shown(whole), whole.refused])
        }),
        { numRuns: 20 },
      )
  })
})
