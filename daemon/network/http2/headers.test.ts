import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Http2Fault } from './fault.ts'
import { HeaderReader } from './header-reader.ts'
import { STATIC_FIELDS } from './header-table.ts'
import { HeaderWriter } from './header-writer.ts'
import { huffmanText } from './huffman.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
const reader = (bytes = 65_536, count = 200): HeaderReader => new HeaderReader({ bytes, count })

/** The examples of RFC 7541, C.3, C.4 and C.6. */
const REQUEST = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
]

describe('header blocks of the standard', () => {
  it.each([
    ['plain', '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d', '8286 84be 5808 6e6f 2d63 6163 6865'],
    ['packed', '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff', '8286 84be 5886 a8eb 1064 9cbf'],
  ])('are read, %s, and remembered', (_, first, second) => {
    const one = reader()
    expect(one.read(hex(first))).toEqual(REQUEST)
    expect(one.read(hex(second))).toEqual([...REQUEST, ['cache-control', 'no-cache']])
  })

  it('are packed by the numbers of every byte', () => {
    expect(huffmanText(hex('9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3'))).toBe('https://www.example.com')
    expect(huffmanText(hex('ffff ffea'))).toBeUndefined()
    expect(STATIC_FIELDS.length).toBe(61)
    expect([STATIC_FIELDS[15], STATIC_FIELDS[60]]).toEqual([
      ['accept-encoding', 'gzip, deflate'],
      ['www-authenticate', ''],
    ])
  })
})

describe('a header block', () => {
  it.each([
    ['names what was never said', 'be'],
    ['names nothing', '80'],
    ['ends in a field', '4005'],
    ['ends in a number', '7f'],
    ['has a number without end', 'ffffffffffff'],
    ['changes the table in the middle', '8220'],
    ['makes the table larger', '3fe21f'],
    ['is packed with the end', '0085ffffffffff00'],
    ['is packed and filled up with zeros', '00811800'],
  ])('that %s is refused', (_, text) => {
    expect(() => reader().read(hex(text))).toThrow(Http2Fault)
  })

  it('that is too large is read and not kept, and the next one can build on it', () => {
    const one = reader(200)
    // Remembered once, and then named a thousand times.
    const said = Buffer.concat([hex('4001 6140'), Buffer.alloc(64, 'v')])
    expect(one.read(Buffer.concat([said, Buffer.alloc(1_000, 0xbe)]))).toBeUndefined()
    expect(one.read(hex('be'))).toEqual([['a', 'v'.repeat(64)]])
  })

  it('has no more fields than it may', () => {
    expect(reader(65_536, 3).read(hex('828282'))?.length).toBe(3)
    expect(reader(65_536, 3).read(hex('82828282'))).toBeUndefined()
  })

  it('says again what was written, whatever it is', () => {
    const text = fc.string({
      unit: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)),
      maxLength: 300,
    })
    fc.assert(
      fc.property(
        fc.array(fc.tuple(text, text), { maxLength: 20 }),
        fc.array(fc.tuple(text, text)),
        (first, second) => {
          const [from, to] = [new HeaderWriter(), reader(1_000_000, 1_000)]
          expect(to.read(from.write(first))).toEqual(first)
          expect(to.read(from.write(second))).toEqual(second)
        },
      ),
    )
  })

  it('of any bytes is fields or a fault', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 4 }), (blocks) => {
        const one = reader(1_000, 20)
        try {
          for (const block of blocks) one.read(Buffer.from(block))
        } catch (error) {
          expect(error).toBeInstanceOf(Http2Fault)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
