import { expect, it } from 'vitest'
import { everySoOften } from './progress.ts'

it('of each piece of work the first is told, and then no more than one per interval', () => {
  const told: unknown[] = []
  let now = 0
  const tell = everySoOften(
    (done, total) => told.push([now, done, total]),
    200,
    () => now,
  )
  for (; now < 500; now += 50) tell(now, null)
  for (; now < 1000; now += 50) tell(now - 500, 500)
  expect(told).toEqual([
    [0, 0, null],
    [200, 200, null],
    [400, 400, null],
    [500, 0, 500],
    [700, 200, 500],
    [900, 400, 500],
  ])
})
