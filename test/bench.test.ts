import { expect, it } from 'vitest'
import { orderOf, quantile, summarise } from './bench/statistics.ts'

it('has the median and the worst of a hundred', () => {
  const samples = Array.from({ length: 100 }, (_, at) => 100 - at)
  expect(summarise(samples)).toEqual({ median: 50, p99: 99, spread: 0.5, rounds: 100 })
  expect(quantile([3, 1, 2], 0.5)).toBe(2)
  expect(quantile([], 0.5)).toBeNaN()
})

it('rotates who goes first', () => {
  expect(orderOf(['a', 'b', 'c'], 0)).toEqual(['a', 'b', 'c'])
  expect(orderOf(['a', 'b', 'c'], 4)).toEqual(['b', 'c', 'a'])
})
