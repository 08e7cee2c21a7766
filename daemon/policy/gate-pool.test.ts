import { afterEach, expect, it } from 'vitest'
import { EMPTY_INPUT } from './empty-input.ts'
import { GatePool, POOL_LIMITS } from './gate-pool.ts'
import { loadPolicies, policySources } from './policy-set.ts'

let pool: GatePool | undefined
afterEach(() => pool?.close())

const input = (): ArrayBuffer => new TextEncoder().encode(EMPTY_INPUT).buffer as ArrayBuffer

it('ends its threads when nothing was asked for a while, and starts one for the next', async () => {
  const policies = await loadPolicies(await policySources({ directory: '/nonexistent' }))
  pool = await GatePool.start(policies, { ...POOL_LIMITS, idleMs: 20 })
  expect(pool.threads).toBe(1)
  for (let round = 0; round < 2; round++) {
    expect(await pool.evaluate(input())).toMatchObject([{ output: expect.anything() }])
    await expect.poll(() => pool?.threads, { timeout: 10_000 }).toBe(0)
  }
  // As many as like may ask at once meanwhile.
  expect((await Promise.all([1, 2, 3].map(() => pool?.evaluate(input())))).length).toBe(3)
})
