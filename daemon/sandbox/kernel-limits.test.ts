import { describe, expect, it } from 'vitest'
import { extendedLimits, kernelLimits, limitGrants, requireLimits, sharesOf } from './kernel-limits.ts'

const MiB = 2 ** 20
const profile = (
  change: Partial<Parameters<typeof kernelLimits>[0]>,
): Parameters<typeof kernelLimits>[0] => ({
  name: 'test',
  budgets: { limits: {}, atLimit: 'kill' },
  resources: {},
  require: [],
  ...change,
})

describe('the limits that controllers are told', () => {
  it('are those of the profile, and none that it does not have', () => {
    expect(kernelLimits(profile({}), ['8:0'])).toEqual({})
    const asked = profile({
      budgets: { limits: { memory: 160 * MiB, pids: 9, wall: 5 }, atLimit: 'kill' },
      resources: { cpus: 1.5, cpuWeight: 50, ioWeight: 10, ioRead: MiB, ioWriteOps: 7, memoryHigh: MiB },
    })
    expect(kernelLimits(asked, ['8:0'])).toEqual({
      memoryBytes: 160 * MiB,
      memoryHighBytes: MiB,
      pids: 9,
      cpus: 1.5,
      io: { devices: ['8:0'], readBytes: MiB, writeOps: 7 },
    })
    expect(sharesOf(asked.resources)).toEqual({ cpuWeight: 50, ioWeight: 10 })
  })

  it('leave an agent alive at its memory budget where somebody will be asked', () => {
    const budgets = { limits: { memory: 160 * MiB }, atLimit: 'freeze' } as const
    const held = { memoryHighBytes: 170 * MiB, memoryBytes: 200 * MiB }
    expect(kernelLimits(profile({ budgets }), [])).toEqual(held)
    expect(kernelLimits(profile({ budgets, resources: { memoryHigh: 100 * MiB } }), [])).toEqual({
      ...held,
      memoryHighBytes: 100 * MiB,
    })
    expect(extendedLimits(profile({ budgets }), 'memory', 320 * MiB)).toEqual({
      memoryHighBytes: 340 * MiB,
      memoryBytes: 400 * MiB,
    })
    expect(extendedLimits(profile({ budgets }), 'pids', 12)).toEqual({ pids: 12 })
    expect(extendedLimits(profile({ budgets }), 'wall', 12)).toEqual({})
  })
})

describe('what was asked and what was granted', () => {
  const asked = profile({ budgets: { limits: { pids: 9 }, atLimit: 'kill' }, resources: { cpus: 2 } })
  const limits = kernelLimits(asked, [])

  it('is said limit by limit', () => {
    expect(limitGrants(asked, limits, ['cpus'])).toEqual([
      { what: 'process limit', requested: '9', granted: '9', full: true },
      { what: 'processors', requested: '2', granted: 'all of them', full: false },
    ])
  })

  it('ends in a refusal where the profile requires the controller, and only there', () => {
    expect(() => requireLimits(asked, ['cpus'])).not.toThrow()
    const strict = { ...asked, require: ['cgroup2-cpu'] as const }
    expect(() => requireLimits(strict, ['pids'])).not.toThrow()
    expect(() => requireLimits(strict, ['cpus'])).toThrow(
      expect.objectContaining({ code: 'feature-missing', data: { feature: 'cgroup2-cpu', limit: 'cpus' } }),
    )
  })
})
