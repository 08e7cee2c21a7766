import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { asFileTime, isTime, packTime, unpackTime } from './file-time.ts'

const NS = 1_000_000_000n
/** What ext4 with inodes of 256 bytes and XFS with bigtime can hold. */
const seconds = fc.bigInt({ min: -(2n ** 31n), max: 16_299_260_424n })
const time = fc.tuple(seconds, fc.bigInt({ min: 0n, max: NS - 1n })).map(([s, ns]) => s * NS + ns)

describe('the time of a file', () => {
  it('is what it was when it was packed, wherever ext4 and XFS have one', () => {
    fc.assert(
      fc.property(time, (ns) => {
        expect(asFileTime(ns)).toBe(ns)
        expect(packTime(ns)).toBe(BigInt.asIntN(64, packTime(ns)))
        expect(unpackTime(packTime(ns))).toBe(ns)
      }),
    )
  })

  it('is packed as it always was up to 2262', () => {
    const until = fc.bigInt({ min: -(2n ** 31n) * NS, max: 2n ** 63n - 1n })
    fc.assert(
      fc.property(until, (ns) => {
        expect(packTime(ns)).toBe(ns)
      }),
    )
  })

  it('is the first or the last one where a filesystem keeps more', () => {
    for (const far of [-(2n ** 70n), 2n ** 70n]) {
      const kept = asFileTime(far)
      expect(unpackTime(packTime(kept))).toBe(kept)
      expect(asFileTime(kept)).toBe(kept)
    }
  })

  it('is what was set also where the filesystem has less: coarser, or ended', () => {
    const set = 7_258_118_400n * NS + 123_456_789n
    expect(isTime(set, set)).toBe(true)
    expect(isTime(7_258_118_400n * NS, set)).toBe(true)
    expect(isTime((2n ** 31n - 1n) * NS, set)).toBe(true)
    expect(isTime(-(2n ** 31n) * NS, -(2n ** 32n) * NS)).toBe(true)
    expect(isTime((2n ** 31n - 1n) * NS, 5n * NS)).toBe(false)
    expect(isTime(set + 1n, set)).toBe(false)
  })
})
