import { describe, expect, it } from 'vitest'
import { Automaton } from './automaton.ts'

const inName = (char: string): boolean => char !== '/'

/** `*a*a…*b`: the texts can lead to as many sets of states as there are stars. */
function stars(count: number): (text: string) => boolean {
  const automaton = new Automaton()
  const end = automaton.end()
  let at = automaton.text('b', end)
  for (let star = 0; star < count; star++) at = automaton.many(inName, automaton.text('a', at))
  return automaton.matcher(at, end)
}

describe('an automaton', () => {
  it('says the same of a text whatever was asked before', () => {
    const asked = stars(3)
    const texts = ['aaab', 'xaxaxab', 'aab', 'xaxaxa', '', 'aaa/b', 'aaabb', 'äaöaüab']
    const fresh = texts.map((text) => stars(3)(text))
    expect(fresh).toEqual([true, true, false, false, false, false, false, true])
    for (let round = 0; round < 3; round++) expect(texts.map(asked)).toEqual(fresh)
  })

  it('forgets what is too much to remember, and is right all the same', () => {
    const automaton = new Automaton()
    const end = automaton.end()
    // Which of the last letters were "a": 2^12 sets of states, a multiple of what is kept.
    let at = end
    for (let letter = 0; letter < 11; letter++) at = automaton.one(inName, at)
    const matches = automaton.matcher(automaton.many(inName, automaton.text('a', at)), end)
    let state = 1
    let text = ''
    for (let length = 0; length < 20_000; length++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      text += state > 0x8000_0000 ? 'a' : String.fromCharCode(0x4e00 + (state % 5000))
    }
    for (let end = text.length - 4; end <= text.length; end++)
      expect(matches(text.slice(0, end))).toBe(text[end - 12] === 'a')
    expect(matches('a'.repeat(11))).toBe(false)
    expect(matches('a'.repeat(12))).toBe(true)
  })
})
