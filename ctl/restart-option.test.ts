import { describe, expect, it } from 'vitest'
import { parseRestart } from './restart-option.ts'

describe('--restart', () => {
  it('reads when, and how often', () => {
    expect(parseRestart('never')).toBeNull()
    expect(parseRestart('always')).toEqual({ when: 'always', times: null })
    expect(parseRestart('on-failure:5')).toEqual({ when: 'on-failure', times: 5 })
    expect(parseRestart('always:10000')).toEqual({ when: 'always', times: 10_000 })
  })

  it.each([
    '',
    'Always',
    'never:1',
    'on-failure:',
    'on-failure:0',
    'always:10001',
    'always:-1',
    'always:1.5',
    'always: 1',
  ])('refuses "%s" and says what can be written', (text) => {
    expect(() => parseRestart(text)).toThrow(
      expect.objectContaining({ code: 'usage', hint: expect.stringContaining('on-failure:5') }),
    )
  })
})
