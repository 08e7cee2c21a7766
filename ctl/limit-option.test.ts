import { describe, expect, it } from 'vitest'
import { parseLimits } from './limit-option.ts'

describe('--limit', () => {
  it('is in bytes, counts and processors', () => {
    expect(parseLimits([])).toEqual({})
    expect(parseLimits(['memory=512M', 'pids=50', 'cpus=0.5'])).toEqual({
      memory: 512 * 2 ** 20,
      pids: 50,
      cpus: 0.5,
    })
    expect(parseLimits(['memory=1.5G', 'memory=20000000'])).toEqual({ memory: 20_000_000 })
  })

  it.each([
    '',
    'memory',
    'memory=',
    'memory=0',
    'memory=1X',
    'pids=1.5',
    'pids=-1',
    'cpus=2k',
    'wall=5m',
    'toString=1',
    '=5',
  ])('refuses "%s" and says what can be written', (pair) => {
    expect(() => parseLimits([pair])).toThrow(
      expect.objectContaining({ code: 'usage', hint: expect.stringContaining('memory=512M') }),
    )
  })
})
