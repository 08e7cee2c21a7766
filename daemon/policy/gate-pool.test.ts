import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { policyModule } from '../../test/fakes/policy-module.ts'
import { EMPTY_INPUT } from './empty-input.ts'
import { GatePool, POOL_LIMITS } from './gate-pool.ts'
import { loadPolicies, policySources } from './policy-set.ts'

let pool: GatePool | undefined
afterEach(() => pool?.close())

const input = (): ArrayBuffer => new TextEncoder().encode(EMPTY_INPUT).buffer as ArrayBuffer

it('ends its workers when nothing was asked for a while, and starts one for the next', async () => {
  const policies = await loadPolicies(await policySources({ directory: '/nonexistent' }))
  pool = await GatePool.start(policies, { ...POOL_LIMITS, idleMs: 20 })
  expect(pool.workers).toHaveLength(1)
  for (let round = 0; round < 2; round++) {
    expect(await pool.evaluate(input())).toMatchObject([{ output: expect.anything() }])
    await expect.poll(() => pool?.workers, { timeout: 10_000 }).toEqual([])
  }
  // As many as like may ask at once meanwhile.
  expect((await Promise.all([1, 2, 3].map(() => pool?.evaluate(input())))).length).toBe(3)
})

it.each([
  ['waits behind no slow policy of somebody else', 2, 'answered'],
  // The control: with one worker for all, it does.
  ['would wait for it with one worker', 1, 'waits'],
])('an evaluation %s', async (_what, most, expected) => {
  const dir = mkdtempSync(join(tmpdir(), 'puzzled-pool-'))
  const file = join(dir, 'loop.wasm')
  writeFileSync(file, policyModule({ kind: 'loop' }, ['house/decision']))
  const policies = await loadPolicies([{ name: 'loop', file }])
  rmSync(dir, { recursive: true })
  pool = await GatePool.start(policies, { ...POOL_LIMITS, most, growMs: 10, timeoutMs: 60_000 })
  const slow = Array.from({ length: 5 }, () => pool?.evaluate(input(), 'slow').catch(() => undefined))
  // Looking at contents asks no policy, so it ends where it gets a worker.
  const other = pool.scan([], 'other').then(
    () => 'answered',
    () => 'refused',
  )
  const patience = new Promise((resolve) => setTimeout(resolve, most === 1 ? 500 : 60_000, 'waits').unref())
  expect(await Promise.race([other, patience])).toBe(expected)
  expect(pool.workers).toHaveLength(most)
  await pool.close()
  await Promise.all(slow)
})

it('has no more workers than it must: short evaluations share one', async () => {
  const policies = await loadPolicies(await policySources({ directory: '/nonexistent' }))
  pool = await GatePool.start(policies, { ...POOL_LIMITS, growMs: 60_000 })
  await Promise.all(Array.from({ length: 20 }, (_, n) => pool?.evaluate(input(), String(n))))
  expect(pool.workers).toHaveLength(1)
})
