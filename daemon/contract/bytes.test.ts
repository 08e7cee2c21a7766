import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodePath, encodePath } from './bytes.ts'

describe('names as JSON', () => {
  it('shows valid UTF-8 as it is', () => {
    expect(encodePath(Buffer.from('src/ünïcode.ts'))).toEqual({ path: 'src/ünïcode.ts' })
  })

  it('shows bytes that are not UTF-8 and keeps them exact', () => {
    const bytes = Buffer.from([0x61, 0xff, 0x62, 0xc3, 0xa9, 0xc3])
    expect(encodePath(bytes)).toEqual({ path: 'a\\xffbé\\xc3', path64: bytes.toString('base64') })
  })

  it('brings every byte string back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(decodePath(JSON.parse(JSON.stringify(encodePath(bytes))))).toEqual(Buffer.from(bytes))
      }),
    )
  })
})
