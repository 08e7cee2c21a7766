import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PuzzledError } from '../lib/errors.ts'
import { resolveRoot } from './inherit.ts'
import { parseProfile, profileSchema } from './profile.ts'

const MINIMAL = `format: puzzled/profile/v1
name: small
description: The smallest profile that is useful.
`

const refusal = (text: string): string => {
  try {
    parseProfile(text, 'p.yaml')
  } catch (error) {
    if (error instanceof PuzzledError && error.code === 'profile-invalid') return error.message
    throw error
  }
  throw new Error('the profile was accepted')
}

describe('resources of a profile', () => {
  it('reads what the kernel is to hold', () => {
    const text = `${MINIMAL}resources: { cpus: 1.5, cpuWeight: 50, ioWrite: 20MB, memoryHigh: 1GiB }\n`
    const { profile } = resolveRoot(parseProfile(text, 'p.yaml'))
    expect(profile.resources).toEqual({ cpus: 1.5, cpuWeight: 50, ioWrite: 2e7, memoryHigh: 1024 ** 3 })
  })

  it.each([
    ['cpuWeight: 0', 'expected a share'],
    ['cpus: 0', 'expected at least 0.01'],
    ['ioReadOps: 0', 'expected a number'],
    ['swap: 1', 'unknown key "swap"'],
  ])('refuse %s', (line, message) => expect(refusal(`${MINIMAL}resources: { ${line} }\n`)).toContain(message))

  it('refuse memory that no start survives', () =>
    expect(refusal(`${MINIMAL}budgets: { memory: 15MiB }\n`)).toContain('expected at least 16MiB'))

  it.each(['nofile: 3', 'stack: 64KiB'])('refuse a limit that no start survives: %s', (line) =>
    expect(refusal(`${MINIMAL}rlimits: { ${line} }\n`)).toContain('expected at least'),
  )
})

describe('profile', () => {
  it('grants nothing that is not written', () => {
    const { profile } = resolveRoot(parseProfile(MINIMAL, 'p.yaml'))
    expect(profile).toMatchObject({
      enforce: 'enforce',
      mounts: [],
      home: 'hidden',
      exec: { allow: [] },
      seccomp: 'strict',
      network: { mode: 'none', rules: [] },
      gate: { allowSetuid: false, onAgentFailure: 'hold' },
    })
  })

  it('reads units', () => {
    const text = `${MINIMAL}budgets: { wall: 90m, memory: 512MiB, disk: 2GB, pids: 64 }\n`
    const { profile } = resolveRoot(parseProfile(text, 'p.yaml'))
    expect(profile.budgets.limits).toEqual({ wall: 5400, memory: 512 * 1024 ** 2, disk: 2e9, pids: 64 })
  })

  const refused: readonly [what: string, added: string, message: RegExp][] = [
    ['an unknown key', 'netwrok: {}\n', /p\.yaml:4:1: unknown key "netwrok", did you mean "network"\?/],
    [
      'an unknown nested key',
      'gate:\n  maxFile: 3\n',
      /p\.yaml:5:3: unknown key "maxFile" in gate, did you mean "maxFiles"\?/,
    ],
    [
      'a grant without why',
      'mounts:\n  - path: /usr\n    mode: ro\n',
      /p\.yaml:5:5: mounts\[0\]\.why: is missing, .*why/,
    ],
    [
      'a short why',
      'mounts:\n  - { path: /usr, mode: ro, why: x }\n',
      /p\.yaml:5:\d+: mounts\[0\]\.why: found "x", expected a reason/,
    ],
    [
      'a wrong mode',
      'mounts:\n  - { path: /usr, mode: rw, why: for the tools }\n',
      /5:\d+: mounts\[0\]\.mode: found "rw", expected "ro" or/,
    ],
    [
      'a relative path',
      'mounts:\n  - { path: usr, mode: ro, why: for the tools }\n',
      /expected an absolute path/,
    ],
    [
      'a path with ..',
      'mounts:\n  - { path: /usr/../etc, mode: ro, why: for the tools }\n',
      /without "\.\."/,
    ],
    [
      'a star host of one label',
      'network: {mode: gated, why: some words, rules: [{id: a, hosts: "*.com", class: read, why: some words}]}\n',
      /at least two labels/,
    ],
    ['a network without why', 'network: { mode: gated }\n', /network\.why: is missing/],
    ['a fractional count', 'budgets: { pids: 1.5 }\n', /budgets\.pids: found 1\.5/],
    ['a negative size', 'budgets: { memory: -1 }\n', /budgets\.memory: found -1, expected a size/],
    ['an unknown unit', 'budgets: { wall: 3 weeks }\n', /expected a duration/],
    ['an unknown feature', 'require: [landlok]\n', /require\[0\]: found "landlok"/],
    ['a duplicate key', 'name: other\n', /p\.yaml:4:1: not readable as YAML 1\.2: .*unique/],
    ['an alias', 'require: &a [landlock]\nprefer: *a\n', /found an (anchor|alias)/],
    ['a tag', 'budgets: !!map {}\n', /found the tag/],
    ['broken YAML', 'mounts: [\n', /not readable as YAML/],
    ['two documents', '---\nname: b\n', /not readable as YAML|found/],
    ['a key of Object.prototype', '__proto__: {}\n', /unknown key|found/],
  ]
  it.each(refused)('refuses %s with the line', (_what, added, message) => {
    expect(refusal(MINIMAL + added)).toMatch(message)
  })

  it('refuses a file that is no mapping, and one that is too large', () => {
    expect(refusal('')).toMatch(/p\.yaml:1:1/)
    expect(refusal('- a\n')).toMatch(/p\.yaml:1:1/)
    expect(refusal(`${MINIMAL}#${'x'.repeat(300_000)}`)).toMatch(/expected at most/)
  })

  it('answers arbitrary text with a profile or with profile-invalid', () => {
    const line = fc.oneof(fc.constantFrom(...Object.keys(profileSchema.shape)), fc.string())
    fc.assert(
      fc.property(fc.array(fc.tuple(line, fc.oneof(fc.string(), fc.json()))), (pairs) => {
        const text = pairs.map(([key, value]) => `${key}: ${value}`).join('\n')
        expect(() => refusal(text)).not.toThrow()
      }),
      { numRuns: 300 },
    )
  })
})
