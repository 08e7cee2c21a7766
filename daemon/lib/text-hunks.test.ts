import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hunksOf, withHunks } from './text-hunks.ts'

const text = (lines: readonly string[], ended: boolean): string => lines.join('\n') + (ended ? '\n' : '')
const line = fc.constantFrom('a', 'b', 'c', '', 'ä', '\r', '\\ No newline at end of file', '-x', '+y', ' z')
const some = fc
  .tuple(fc.array(line, { maxLength: 40 }), fc.boolean())
  .map(([lines, ended]) => text(lines, ended))
const take = (before: string, after: string, chosen: (index: number) => boolean): string => {
  const hunks = hunksOf(Buffer.from(before), Buffer.from(after)) ?? []
  const indices = new Set(hunks.map((_hunk, index) => index).filter(chosen))
  return withHunks(Buffer.from(before), hunks, indices).toString()
}

describe('a change in pieces', () => {
  it('is the whole change with all of them and none with none', () =>
    fc.assert(
      fc.property(some, some, (before, after) => {
        expect(take(before, after, () => true)).toBe(after)
        expect(take(before, after, () => false)).toBe(before)
      }),
      { numRuns: 2000 },
    ))

  it('taken in two steps is the whole change', () =>
    fc.assert(
      fc.property(some, some, (before, after) => {
        const first = take(before, after, (index) => index % 2 === 0)
        expect(take(first, after, () => true)).toBe(after)
      }),
      { numRuns: 500 },
    ))

  it('is taken where it stands', () => {
    const numbers = Array.from({ length: 30 }, (_, index) => `${index}`)
    const changed = numbers.map((each) => (each === '2' || each === '25' ? `${each}!` : each))
    const [before, after] = [text(numbers, true), text(changed, false)]
    expect(hunksOf(Buffer.from(before), Buffer.from(after))?.length).toBe(2)
    expect(take(before, after, (index) => index === 0)).toBe(before.replace('\n2\n', '\n2!\n'))
  })

  it('cannot be cut where it is no text', () => {
    expect(hunksOf(Buffer.from([0xff]), Buffer.from('a'))).toBeNull()
    expect(hunksOf(Buffer.from('a\0b'), Buffer.from('a'))).toBeNull()
  })

  it('is refused for another text than the one it was made of', () => {
    const hunks = hunksOf(Buffer.from('a\n'), Buffer.from('b\n')) ?? []
    expect(() => withHunks(Buffer.from('x\n'), hunks, new Set([0]))).toThrow('does not fit')
  })
})
