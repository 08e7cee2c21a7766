import { describe, expect, it } from 'vitest'
import { ROWS } from './threats/rows.ts'
import { titlesIn } from './threats/titles.ts'

/** Sections 1 to 5 of the list of threats. */
const LAST = 49

describe('every threat', () => {
  it('from the first to the last has its row, in order', () =>
    expect(ROWS.map(({ id }) => id)).toEqual(Array.from({ length: LAST }, (_, index) => `S${index + 1}`)))

  it.each(ROWS)('$id $threat is attacked where its row says', ({ shown }) => {
    expect(shown).not.toEqual([])
    for (const place of shown) {
      const [file = '', title = ''] = place.split(' › ')
      expect(titlesIn(file), place).toContain(title)
    }
  })

  it.each(ROWS)('$id $threat names its control and what stands in the way', ({ control, behind }) => {
    expect(control.length).toBeGreaterThan(10)
    expect(behind.length).toBeGreaterThan(5)
  })
})

it('a title that no test has is noticed', () => {
  expect(titlesIn('test/threats.test.ts')).toContain('a title that no test has is noticed')
  expect(titlesIn('test/threats.test.ts')).not.toContain('a title that is only mentioned')
})
