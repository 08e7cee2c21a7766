import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { RefusalLog } from './refusals.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const refusal = (what: string) => ({ uid: 1000, what, why: 'not allowed' })

it('a loop of refusals is one record, and one more that says how many', () => {
  const records: object[] = []
  const log = new RefusalLog((facts) => records.push(facts))
  for (let count = 0; count < 100_000; count++) log.add(refusal('Run'))
  log.add(refusal('Reload'))
  expect(records).toEqual([refusal('Run'), refusal('Reload')])
  vi.advanceTimersByTime(60_000)
  expect(records.slice(2)).toEqual([{ ...refusal('Run'), repeated: 99_999 }])
  log.add(refusal('Run'))
  expect(records.at(-1)).toEqual(refusal('Run'))
})

it('many different ones are bounded too, and none is forgotten in the count', () => {
  const records: { repeated?: number }[] = []
  const log = new RefusalLog((facts) => records.push(facts))
  for (let count = 0; count < 10_000; count++) log.add(refusal(`method ${count}`))
  log.flush()
  expect(records.length).toBe(257)
  const repeated = records.reduce((sum, one) => sum + (one.repeated ?? 0), 0)
  expect(256 + repeated).toBe(10_000)
})
