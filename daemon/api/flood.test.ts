import { expect, it } from 'vitest'
import { FloodGate } from './flood.ts'

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'admitted',
    (error: { code?: string }) => error.code ?? String(error),
  )

it('admits so many calls and bytes a second, and each caller by itself', async () => {
  let now = 0
  const gate = new FloodGate(() => now)
  const call = (caller: string, bytes = 0) => codeOf(gate.admit(caller, bytes, async () => undefined))
  for (let calls = 0; calls < 500; calls++) expect(await call('a')).toBe('admitted')
  expect(await call('a')).toBe('too-large')
  expect(await call('b')).toBe('admitted')
  now = 1000
  expect(await call('a')).toBe('admitted')
  for (let calls = 0; calls < 4; calls++) expect(await call('b', 4 << 20)).toBe('admitted')
  expect(await call('b', 1)).toBe('too-large')
  expect(await call('c', (4 << 20) + 1)).toBe('too-large')
})

it('lets 64 run at once, counts one that fails as over, and forgets who is gone', async () => {
  const gate = new FloodGate(() => 0)
  const ends: (() => void)[] = []
  const running = Array.from({ length: 64 }, () =>
    gate.admit('a', 0, () => new Promise<void>((resolve) => ends.push(resolve))),
  )
  expect(await codeOf(gate.admit('a', 0, async () => undefined))).toBe('too-large')
  for (const end of ends) end()
  await Promise.all(running)
  expect(await codeOf(gate.admit('a', 0, () => Promise.reject(new Error('failed'))))).toBe('Error: failed')
  expect(await codeOf(gate.admit('a', 0, async () => undefined))).toBe('admitted')
  gate.forget('a')
  expect(gate.size).toBe(0)
})
