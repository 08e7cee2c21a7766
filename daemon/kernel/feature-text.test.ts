import { describe, expect, it } from 'vitest'
import { FEATURE_NAMES, type FeatureName } from '../contract/features.ts'
import { applyOverride, parseOverrides } from './feature-override.ts'
import { FEATURE_TEXT, featureRow, landlockRestriction } from './feature-text.ts'

describe('a row of the doctor', () => {
  it('has nothing to say where the feature is there', () => {
    const row = featureRow('netns', { level: 1, detail: 'made one' })
    expect(row).toEqual({ name: 'netns', state: 'have', level: 1, detail: 'made one', lost: '', remedy: '' })
  })

  it.each(FEATURE_NAMES)('says what is lost without %s, and what mends it', (name) => {
    const row = featureRow(name, { level: 0, detail: 'EPERM' })
    expect(row.state).toBe('missing')
    expect(row.lost).toMatch(/^[A-Z].*\.$/)
    expect(row.remedy.length > 5, row.remedy).toBe(!row.lost.startsWith('Nothing: '))
    expect(FEATURE_TEXT[name].lost).toBe(row.lost)
  })

  it('promises nothing that puzzled does not do', () => {
    const lost = (name: FeatureName): string => featureRow(name, { level: 0, detail: '' }).lost
    // No program of puzzled uses them for an agent: with them, everything is as it is without.
    for (const name of ['bpf-lsm', 'fanotify', 'overlay-userxattr'] as const)
      expect(lost(name)).toMatch(/^Nothing: .*with it and without it\.$/)
    // Limits that no controller holds are watched by the meter, and by nothing else.
    for (const name of ['cgroup2-memory', 'cgroup2-pids'] as const)
      expect(lost(name)).toContain('looked at four times a second')
  })

  it('says what is lost by a restriction, and prefers the remedy of the probe', () => {
    const row = featureRow('overlay', { level: 1, detail: 'old', restriction: 'Less.', remedy: 'Do this.' })
    expect(row).toMatchObject({ state: 'partly', level: 1, lost: 'Less.', remedy: 'Do this.' })
  })
})

describe('Landlock', () => {
  it('is whole from ABI 6 on, and below it loses more with every step', () => {
    expect(landlockRestriction(6)).toBeUndefined()
    const lost = [5, 4, 3, 2, 1].map((abi) => landlockRestriction(abi)?.split(';').length)
    expect(lost).toEqual([1, 2, 3, 4, 5])
  })
})

describe('PUZZLED_TEST_FEATURES', () => {
  const finding = { level: 7, detail: 'ABI 7' }

  it('makes a host poorer', () => {
    const overrides = parseOverrides('landlock:3,bpf-lsm:0')
    const row = featureRow('landlock', applyOverride('landlock', finding, overrides))
    expect(row).toMatchObject({ state: 'partly', level: 3, lost: expect.stringContaining('TCP ports') })
    expect(row.detail).toContain('really: ABI 7')
    const gone = featureRow('bpf-lsm', applyOverride('bpf-lsm', { level: 1, detail: '' }, overrides))
    expect(gone).toMatchObject({ state: 'missing', level: 0 })
  })

  it('never makes it richer, and leaves the others alone', () => {
    const overrides = parseOverrides('landlock:9')
    expect(applyOverride('landlock', finding, overrides)).toBe(finding)
    expect(applyOverride('netns', { level: 0, detail: 'EPERM' }, parseOverrides('netns:1')).level).toBe(0)
    expect(applyOverride('overlay', finding, overrides)).toBe(finding)
    expect(parseOverrides(undefined).size).toBe(0)
  })

  it.each(['landlock', 'landlock:x', 'nope:1', 'landlock:-1', 'landlock:1:2'])('refuses %s', (text) =>
    expect(() => parseOverrides(text)).toThrow(/unknown entry/),
  )
})
