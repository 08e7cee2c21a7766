import { describe, expect, it } from 'vitest'
import { initFlags } from './spawn.ts'

describe('the flags of init', () => {
  it('say whether it has a terminal, and when it starts its agent again', () => {
    expect(initFlags(false, null)).toBe('-')
    expect(initFlags(true, null)).toBe('t')
    expect(initFlags(true, { when: 'on-failure', times: 5 })).toBe('tf5')
    expect(initFlags(false, { when: 'always', times: null })).toBe('-a')
  })
})
