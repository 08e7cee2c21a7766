import { expect, it } from 'vitest'
import { hasIdleProcessor } from './second-walker.ts'

it('a second walker is started only where a processor is idle', () => {
  const running = (count: number) => `0.42 7.10 9.30 ${count}/174 14314\n`
  expect([1, 2, 3].map((count) => hasIdleProcessor(running(count), 2))).toEqual([true, false, false])
  expect(hasIdleProcessor(running(1), 1)).toBe(false)
  expect(hasIdleProcessor('', 8)).toBe(false)
})
