import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAddress } from './address.ts'
import { answer, parseQuery, RCODE, TYPE } from './dns-message.ts'

function query(
  labels: readonly (string | Buffer)[],
  type: number = TYPE.A,
  flags = 0x0100,
  counts = [1, 0, 0, 0],
): Buffer {
  const name = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)])
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0x1234, 0)
  head.writeUInt16BE(flags, 2)
  for (const [at, count] of counts.entries()) head.writeUInt16BE(count, 4 + 2 * at)
  return Buffer.concat([head, ...name, Buffer.from([0, 0, type, 0, 1])])
}

describe('DNS messages', () => {
  it('are one question', () => {
    const parsed = parseQuery(query(['api', 'example', 'com'], TYPE.AAAA))
    expect(parsed).toMatchObject({
      ok: true,
      question: { id: 0x1234, name: 'api.example.com', type: TYPE.AAAA },
    })
  })

  it.each([
    ['an answer', query(['a'], 1, 0x8100), undefined],
    ['an update', query(['a'], 1, 0x2800), RCODE.notImplemented],
    ['two questions', query(['a'], 1, 0x0100, [2, 0, 0, 0]), RCODE.malformed],
    [
      'a compressed name',
      Buffer.concat([query([]).subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
      RCODE.malformed,
    ],
    ['a cut name', query(['example', 'com']).subarray(0, 16), RCODE.malformed],
    [
      'a long label',
      Buffer.concat([query([]).subarray(0, 12), Buffer.from([64]), Buffer.alloc(70)]),
      RCODE.malformed,
    ],
    ['a dot in a label', query(['evil.test', 'example']), RCODE.malformed],
    ['a name over 255 bytes', query(Array(5).fill('a'.repeat(60))), RCODE.malformed],
  ])('refuse %s', (_name, message, rcode) => {
    const parsed = parseQuery(message)
    expect(
      parsed.ok ? 'ok' : parsed.id === undefined ? undefined : 'rcode' in parsed ? parsed.rcode : 'no',
    ).toBe(rcode)
  })

  it('never throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
        parseQuery(Buffer.from(bytes))
      }),
      { numRuns: 1000 },
    )
  })

  it('answer with the address', () => {
    const parsed = parseQuery(query(['a', 'example']))
    const address = parseAddress('198.18.0.1')
    if (!parsed.ok || address === undefined) throw new Error('setup')
    const bytes = answer(parsed.question, RCODE.ok, [address])
    expect(bytes.readUInt16BE(6)).toBe(1)
    expect([...bytes.subarray(-4)]).toEqual([198, 18, 0, 1])
    expect(bytes.readUInt16BE(2) & 0x8000).toBe(0x8000)
  })
})
