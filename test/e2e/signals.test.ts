import { describe, expect } from 'vitest'
import { onBus } from './grounds.ts'
import { type Begun, eventually, WHO } from './private-bus.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
type Signal = (typeof SIGNALS)[number]

/** How a verb that lasts ends at each signal: with a status, or by the signal itself. */
const TABLE: Readonly<
  Record<string, { words: readonly string[]; ends: Readonly<Record<Signal, 0 | 'signal'>> }>
> = {
  attach: { words: ['attach'], ends: { SIGINT: 0, SIGTERM: 0, SIGHUP: 0, SIGQUIT: 0 } },
  events: {
    words: ['events', '--follow', '--branch'],
    ends: { SIGINT: 0, SIGTERM: 0, SIGHUP: 'signal', SIGQUIT: 'signal' },
  },
  logs: { words: ['logs', '--follow'], ends: { SIGINT: 0, SIGTERM: 0, SIGHUP: 'signal', SIGQUIT: 'signal' } },
}

/** Something was written, so the verb is in the midst of its work. */
const busy = (child: Begun['child']): Promise<unknown> =>
  new Promise((resolve) => child.stdout?.once('data', resolve))

describe('a signal to a verb that only looks on', () => {
  const { here, it } = onBus('all')
  const start = async (): Promise<string> =>
    (
      await here.puzzlectl(WHO.developer, 'run', '--detach', '--', 'sh', '-c', 'echo up; exec sleep 600')
    ).out.trim()
  const stateOf = async (id: string): Promise<string> =>
    (JSON.parse((await here.puzzlectl(WHO.developer, 'show', id, '--json')).out) as { state: string }).state

  for (const [verb, { words, ends }] of Object.entries(TABLE))
    it(`${verb} ends as the manual says, and the agent goes on`, async () => {
      const id = await start()
      // What it has written is kept before anybody looks.
      await eventually(async () => expect((await here.puzzlectl(WHO.developer, 'logs', id)).out).toBe('up\n'))
      for (const signal of SIGNALS) {
        const begun = here.begin(WHO.root, ...words, id)
        await busy(begun.child)
        begun.child.kill(signal)
        const { status, err } = await begun.ended
        const how = begun.child.signalCode ?? status
        expect([verb, signal, how]).toEqual([verb, signal, ends[signal] === 0 ? 0 : signal])
        expect(err).not.toMatch(/\n {4}at |internal error/)
      }
      expect(await stateOf(id)).toBe('running')
      expect((await here.puzzlectl(WHO.developer, 'discard', id)).status).toBe(0)
    })

  it('ends one that waits, and neither the agent nor another one that waits', async () => {
    const id = await start()
    const [gone, stays] = [here.begin(WHO.root, 'wait', id), here.begin(WHO.root, 'wait', id)]
    gone.child.kill('SIGTERM')
    expect((await gone.ended).err).toBe('')
    expect(gone.child.signalCode).toBe('SIGTERM')
    expect(await stateOf(id)).toBe('running')
    await here.puzzlectl(WHO.developer, 'signal', id, 'KILL')
    expect((await stays.ended).status).toBe(137)
  })
})
