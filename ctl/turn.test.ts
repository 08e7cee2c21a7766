import { expect, it } from 'vitest'
import { PuzzledError } from '../daemon/lib/errors.ts'
import { type Clock, inTurn } from './turn.ts'

/** A store that these processes hold one after the other, each for so long. */
function store(...holders: readonly (readonly [pid: string, milliseconds: number, long?: boolean])[]) {
  let now = 0
  const clock: Clock = {
    now: () => now,
    sleep: async (milliseconds) => {
      now += milliseconds
    },
  }
  const open = async (): Promise<string> => {
    let until = 0
    for (const [holder, milliseconds, long = true] of holders) {
      until += milliseconds
      if (now < until)
        throw new PuzzledError('state-locked', `In use by ${holder}`, { data: { holder, long } })
    }
    return `opened after ${now}`
  }
  return { open, clock }
}

it('whoever waits is patient with each holder of the store, not with all of them together', async () => {
  const { open, clock } = store(['1', 4000], ['2', 4000], ['3', 4000])
  expect(await inTurn(open, 5000, clock)).toBe('opened after 12000')
})

it('one that runs no agent is waited for much longer: it is at work', async () => {
  const { open, clock } = store(['1', 20_000, false], ['1', 4000], ['1', 20_000, false])
  expect(await inTurn(open, 5000, clock)).toBe('opened after 44000')
  const stuck = store(['1', 200_000, false])
  await expect(inTurn(stuck.open, 5000, stuck.clock)).rejects.toThrow('In use by 1')
  expect(stuck.clock.now()).toBe(60_000)
})

it('whoever waits for long is told for whom, once for each', async () => {
  const { open, clock } = store(['1', 1500], ['2', 20_000, false], ['3', 3000])
  const told: string[] = []
  await inTurn(open, 5000, clock, (sentence) => told.push(sentence))
  expect(told).toEqual(['In use by 2: waiting', 'In use by 3: waiting'])
})

it('one that keeps it for longer is named', async () => {
  const { open, clock } = store(['1', 4000], ['2', 6000])
  await expect(inTurn(open, 5000, clock)).rejects.toThrow('In use by 2')
  expect(clock.now()).toBe(9000)
})

it('without patience, and for other errors, nobody waits', async () => {
  const { open, clock } = store(['1', 4000])
  await expect(inTurn(open, 0, clock)).rejects.toThrow('In use by 1')
  const broken = () => Promise.reject(new PuzzledError('internal', 'broken'))
  await expect(inTurn(broken, 5000, clock)).rejects.toThrow('broken')
  expect(clock.now()).toBe(0)
})
