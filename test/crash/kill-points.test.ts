import { expect, it } from 'vitest'
import { comparable } from './kill-points.ts'

const line = (time: string, digest: string): string => `/large file 644 0:0 ${time} 3000000 ${digest} `
const TIME = '1763717147123456789'
/** One digest in eight thousand begins with as many digits as a time has. */
const NUMERIC = `1234567890123456789${'a'.repeat(45)}`

it('two trees that differ in their times alone are the same', () => {
  expect(comparable(line(TIME, NUMERIC))).toBe(comparable(line('1763717147999999999', NUMERIC)))
})

it('a digest is compared to its last digit, also where it looks like a time', () => {
  const other = `1234567890123456780${'a'.repeat(45)}`
  expect(comparable(line(TIME, NUMERIC))).not.toBe(comparable(line(TIME, other)))
})
