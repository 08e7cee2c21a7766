import { expect, it } from 'vitest'
import { Recent } from './recent.ts'

it('finds once for all who ask within its age, and anew when asked to', async () => {
  let [now, found] = [0, 0]
  const recent = new Recent<number>(1000, () => now)
  const find = async (): Promise<number> => ++found
  expect(await Promise.all([recent.get(find), recent.get(find)])).toEqual([1, 1])
  now = 1000
  expect(await recent.get(find)).toBe(1)
  now = 1001
  expect(await recent.get(find)).toBe(2)
  expect(await recent.renew(find)).toBe(3)
  expect(await recent.get(find)).toBe(3)
})

it('keeps no failure', async () => {
  const recent = new Recent<number>(1000, () => 0)
  await expect(recent.get(() => Promise.reject(new Error('not now')))).rejects.toThrow('not now')
  expect(await recent.get(async () => 1)).toBe(1)
})
