import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frameOf, HeaderReader } from './frames.ts'

const bytesOf = (...messages: unknown[]): Buffer =>
  Buffer.concat(messages.flatMap((message) => frameOf(message)))
const prefix = (header: number, body: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(header, 0)
  bytes.writeUInt32LE(body, 4)
  return bytes
}

describe('messages of a worker', () => {
  it('are found again however the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 5 }), fc.array(fc.nat(40)), (messages, cuts) => {
        const reader = new HeaderReader(1_000_000)
        const stream = bytesOf(...messages)
        const found: string[] = []
        let at = 0
        for (const cut of [...cuts, stream.length]) {
          found.push(...reader.take(stream.subarray(at, at + cut)))
          at += cut
        }
        expect(found).toEqual(messages.map((message) => JSON.stringify(message)))
      }),
    )
  })

  it('are refused before they are kept when they are too long, empty, or bring bytes along', () => {
    expect(() => new HeaderReader(10).take(prefix(11, 0))).toThrow('a message of 11 bytes, at most 10')
    expect(() => new HeaderReader(10).take(prefix(0xffffffff, 0))).toThrow('4294967295 bytes')
    expect(() => new HeaderReader(10).take(prefix(0, 0))).toThrow('a message of 0 bytes')
    expect(() => new HeaderReader(10).take(prefix(5, 1))).toThrow('a message with 1 bytes beside it')
  })
})
