import { describe, expect, it } from 'vitest'
import { parseBudgets } from './budget-option.ts'

describe('--budget', () => {
  it('reads times, sizes and counts', () => {
    expect(parseBudgets(['wall=10m', 'cpu=1.5h', 'memory=2G', 'disk=500M', 'pids=100'])).toEqual({
      wall: 600,
      cpu: 5400,
      memory: 2 * 1024 ** 3,
      disk: 500 * 1024 ** 2,
      pids: 100,
    })
  })

  it.each(['wall', 'wall=', 'wall=ten', 'wall=-1', 'wall=5G', 'memory=1h', 'wall=1m2', '=5'])(
    'refuses %s',
    (pair) => {
      expect(() => parseBudgets([pair])).toThrow(/is not a budget/)
    },
  )
})
