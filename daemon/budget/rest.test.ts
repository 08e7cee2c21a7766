import { describe, expect, it } from 'vitest'
import { Rest } from './rest.ts'

/** Reads so often, with what the processor was used until then. */
function looks(cpu: (at: number) => number | null, times: number): { looked: number[]; read: number[] } {
  const rest = new Rest<number>()
  const looked: number[] = []
  const read = Array.from({ length: times }, (_, at) =>
    rest.read(cpu(at), () => {
      looked.push(at)
      return at
    }),
  )
  return { looked, read }
}

describe('an agent', () => {
  it('that runs is looked at each time', () => expect(looks((at) => at, 200).looked).toHaveLength(200))

  it('whose processor time nobody knows is looked at each time', () =>
    expect(looks(() => null, 200).looked).toHaveLength(200))

  it('that rests is looked at for ten seconds more, and then every fifteen', () => {
    const { looked, read } = looks(() => 7, 181)
    expect(looked).toEqual([...Array.from({ length: 40 }, (_, at) => at), 60, 120, 180])
    expect(read[119]).toBe(60)
  })

  it('that runs again is looked at at once', () =>
    expect(looks((at) => (at < 50 ? 7 : 8), 51).looked.at(-1)).toBe(50))

  it('that rests needs no look between these, and the count of them goes on', () => {
    const rest = new Rest<number>()
    const looked: number[] = []
    for (let at = 0; at < 181; at++) if (!rest.skips(7)) rest.read(7, () => looked.push(at))
    expect(looked).toEqual([...Array.from({ length: 40 }, (_, at) => at), 60, 120, 180])
    expect([rest.skips(7), rest.skips(8), rest.skips(null)]).toEqual([true, false, false])
  })

  it('that was never looked at, or in vain, is not skipped', () => {
    const rest = new Rest<number>()
    expect(rest.skips(7)).toBe(false)
    for (let at = 0; at < 60; at++) rest.read(7, () => at)
    expect(() =>
      rest.read(7, () => {
        throw new Error('no space')
      }),
    ).toThrow()
    expect(rest.skips(7)).toBe(false)
  })

  it('whose use cannot be read is looked at again at once, at rest or not', () => {
    const rest = new Rest<number>()
    for (let at = 0; at < 60; at++) rest.read(7, () => at)
    const fail = (): number => {
      throw new Error('no space')
    }
    expect(() => rest.read(7, fail)).toThrow('no space')
    expect(rest.read(7, () => 99)).toBe(99)
  })
})
