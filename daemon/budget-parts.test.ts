import { expect, it } from 'vitest'
import type { RunningAgent } from './agent/ports.ts'
import { budgeting } from './budget-parts.ts'

type Watch = ReturnType<typeof budgeting>['watch']

/** What a branch at its disk limit is told, over a filesystem that holds limits or does not. */
async function factsAtLimit(held: boolean): Promise<unknown> {
  const network = { readings: () => ({}) } as unknown as Parameters<typeof budgeting>[1]
  const reader = {
    read: () => ({ disk: 100 }),
    last: async () => ({ disk: 100 }),
    extend: () => undefined,
    held,
  }
  const space = { readerOf: () => reader } as unknown as Parameters<typeof budgeting>[2]
  const agent = { readings: () => ({}), freeze: async () => undefined } as unknown as RunningAgent
  const budgets = { limits: { disk: 100 } }
  const resolved = { profile: { resolved: { budgets } }, extensions: {} }
  const record = { id: 'b', ...resolved } as unknown as Parameters<Watch>[0]
  let watch: ReturnType<Watch> | undefined
  try {
    return await new Promise((resolve) => {
      watch = budgeting(true, network, space).watch(record, 'freeze', agent, {
        crossed: () => undefined,
        exceeded: (_message, _action, facts) => resolve(facts),
        spent: () => undefined,
      })
    })
  } finally {
    await watch?.stop(false)
  }
}

it('a limit that the filesystem holds is refused by the quota, one that is measured by the budget', async () => {
  expect(await factsAtLimit(true)).toMatchObject({ budget: 'disk', layer: 'quota' })
  expect(await factsAtLimit(false)).not.toHaveProperty('layer')
})
