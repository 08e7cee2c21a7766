import { describe, expect, it } from 'vitest'

interface Line {
  tier: string
  file: string
  name: string
  state: string
  reason: string
}
interface Unsteady {
  filesToRepeat(results: readonly Line[]): { tier: string; file: string }[]
  withRepeated(results: readonly Line[], repeated: readonly Line[]): { results: Line[]; unsteady: Line[] }
}
const tool = new URL('../tools/unsteady.mjs', import.meta.url).href
const { filesToRepeat, withRepeated } = (await import(tool)) as Unsteady

const line = (tier: string, file: string, name: string, state: string): Line => ({
  tier,
  file,
  name,
  state,
  reason: '',
})
const good = line('root', 'test/root/a.test.ts', 'a', 'passed')
const bad = line('e2e', 'test/e2e/b.test.ts', 'b', 'failed')
const beside = line('e2e', 'test/e2e/b.test.ts', 'beside', 'passed')
const first = [good, bad, beside]

describe('a test that failed', () => {
  it('is tried once more with its file, where that hides nothing', () => {
    expect(filesToRepeat(first)).toEqual([{ tier: 'e2e', file: 'test/e2e/b.test.ts' }])
    expect(filesToRepeat([good])).toEqual([])
  })

  it('is not tried again where one failure in many is what is looked for', () => {
    for (const tier of ['escape', 'crash'])
      expect(filesToRepeat([...first, line(tier, `test/${tier}/c.test.ts`, 'c', 'failed')])).toEqual([])
  })

  it('is not tried again when nobody knows where it failed, or when many did', () => {
    expect(filesToRepeat([...first, line('unit', '', 'an error of no test', 'failed')])).toEqual([])
    expect(filesToRepeat([1, 2, 3, 4, 5].map((n) => line('unit', `${n}`, 'x', 'failed')))).toEqual([])
  })

  it('and passes then is told, and counts as passed', () => {
    const again = [{ ...bad, state: 'passed' }, beside]
    expect(withRepeated(first, again)).toEqual({ results: [good, ...again], unsteady: [bad] })
  })

  it('and fails again has failed', () => {
    expect(withRepeated(first, [bad, beside])).toEqual({ results: first, unsteady: [] })
  })

  it('and does not run again has failed', () => {
    expect(withRepeated(first, [])).toEqual({ results: first, unsteady: [] })
  })
})
