import { expect, it } from 'vitest'
import { scopesOfSystemd } from './systemd-cgroups.ts'

/** A bus on which nobody answers, or somebody does. */
function bus(call: () => Promise<unknown[]>) {
  const seen = { closed: 0 }
  const connect = async () => ({ call, close: async () => void seen.closed++ })
  return { seen, start: scopesOfSystemd(connect, 20) }
}

it('a systemd that does not answer is an error, and the connection is closed', async () => {
  const { seen, start } = bus(() => new Promise(() => undefined))
  await expect(start('puzzle-x.scope', 1, 'x', {})).rejects.toMatchObject({
    code: 'start-failed',
    message: 'systemd did not answer within 0.02 s about puzzle-x.scope',
  })
  expect(seen.closed).toBe(1)
})

it('an answer ends the wait, and a refusal is what it says', async () => {
  const good = bus(async () => [])
  await good.start('puzzle-x.scope', 1, 'x', {})
  expect(good.seen.closed).toBe(1)
  const bad = bus(() => Promise.reject(new Error('no such slice')))
  await expect(bad.start('puzzle-x.scope', 1, 'x', {})).rejects.toThrow('no such slice')
})
