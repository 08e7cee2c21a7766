import { describe, expect, it } from 'vitest'
import type { DoctorReport } from '../../daemon/contract/doctor.ts'
import type { FeatureRow } from '../../daemon/contract/features.ts'
import { doctorStatus, doctorText } from './doctor.ts'
import { colours, plain } from './paint.ts'

const have = (name: FeatureRow['name']): FeatureRow => ({
  name,
  state: 'have',
  level: 1,
  detail: 'tried',
  lost: '',
  remedy: '',
})
const gone = (name: FeatureRow['name']): FeatureRow => ({
  ...have(name),
  state: 'missing',
  level: 0,
  lost: `No ${name}.`,
  remedy: `get ${name}`,
})
const report = (change: Partial<DoctorReport> = {}): DoctorReport => ({
  version: 1,
  host: { kernel: '6.1', architecture: 'x64', node: 'v20', uid: 0, problem: null },
  state: { path: '/var/lib/puzzled', exists: true, filesystem: 'ext4', problem: null },
  features: [have('seccomp'), have('landlock')],
  ready: true,
  ...change,
})

describe('the doctor', () => {
  it('says in one sentence that all is well', () => {
    const text = doctorText(report(), plain)
    expect(text).toContain('seccomp   have   tried\n')
    expect(text).toMatch(/\n\nAgents can be started here\.\n$/)
    expect(doctorStatus(report())).toBe(0)
  })

  it('says for each lack what is lost and what mends it', () => {
    const lacking = report({ features: [gone('seccomp'), gone('ima')], ready: false })
    const text = doctorText(lacking, plain)
    expect(text).toContain('ima: No ima.\n  mend: get ima\n')
    expect(text).toContain('No agent can be started here: seccomp missing.')
    expect(doctorStatus(lacking)).toBe(69)
  })

  it('shows what is wrong with the state directory, with its remedy', () => {
    const problem = { code: 'state-unsuitable', message: 'It is on tmpfs', hint: 'Move it' } as const
    const bad = report({
      state: { path: '/tmp/s\u001b[2J', exists: false, filesystem: 'tmpfs', problem },
      ready: false,
    })
    const text = doctorText(bad, plain)
    expect(text).toContain('It is on tmpfs\n  mend: Move it\n')
    expect(text).toContain('(not made yet)')
    expect(text).not.toContain('\u001b')
    expect(doctorStatus(bad)).toBe(78)
  })

  it('says why a root is none, before anything else', () => {
    const problem = { code: 'not-root', message: 'This root may not', hint: 'Be another' } as const
    const weak = report({ ready: false, features: [gone('seccomp')] })
    const text = doctorText({ ...weak, host: { ...weak.host, problem } }, plain)
    expect(text).toMatch(/\nThis root may not\n {2}mend: Be another\nNo agent can be started here/)
    expect(doctorStatus({ ...weak, host: { ...weak.host, problem } })).toBe(77)
  })

  it('colours the state, and only when asked', () => {
    const text = doctorText(report({ features: [gone('ima')] }), colours)
    expect(text).toContain(`ima      ${colours.red('missing')}  tried`)
    expect(doctorText(report({ features: [gone('ima')] }), plain)).not.toContain('\u001b')
  })
})
