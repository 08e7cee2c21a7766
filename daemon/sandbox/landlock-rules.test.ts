import { describe, expect, it } from 'vitest'
import type { NetworkProfile, Profile } from '../contract/profile.ts'
import { FS_RIGHTS, NEWEST_ABI, rightsOf } from '../kernel/landlock-abi.ts'
import {
  LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON as AFTER,
  LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF as BEFORE,
} from '../kernel/uapi/security.ts'
import { type LandlockInput, type LandlockPath, landlockOps, tcpPorts } from './landlock-rules.ts'

const network = (change: Partial<NetworkProfile> = {}): NetworkProfile => ({
  mode: 'gated',
  rules: [],
  expose: [],
  ports: [],
  replay: 'after-files',
  credentials: [],
  ...change,
})
const profile = (change: Partial<Profile> = {}): LandlockInput['profile'] => ({
  name: 'p',
  exec: { allow: 'any', deny: [] },
  network: network(),
  require: [],
  seccomp: 'standard',
  ...change,
})
const paths: LandlockPath[] = [
  { path: '/usr', kind: 'directory', access: 'execute' },
  { path: '/home/u/app', kind: 'directory', access: 'write' },
  { path: '/dev/null', kind: 'file', access: 'device' },
]
const plan = (change: Partial<LandlockInput> = {}) =>
  landlockOps({ profile: profile(), abi: 7, paths, ...change })
const bytesOf = (arg: unknown): DataView => {
  if (!(arg instanceof Uint8Array)) throw new TypeError('not bytes')
  return new DataView(arg.buffer, arg.byteOffset, arg.byteLength)
}
const allowed = (of: string, change: Partial<LandlockInput> = {}): string[] => {
  const op = plan(change).ops.find((entry) => entry.name.endsWith(`beneath "${of}"`))
  const bits = bytesOf(op?.args[2]).getBigUint64(0, true)
  return FS_RIGHTS.filter((right) => (bits & right.bit) !== 0n).map((right) => right.name)
}

describe('the Landlock plan', () => {
  it('creates, opens and allows each place, restricts last', () => {
    expect(plan().ops.map((op) => op.call)).toEqual([
      'landlock_create_ruleset',
      ...paths.flatMap(() => ['openat', 'landlock_add_rule']),
      'landlock_restrict_self',
    ])
  })

  it('puts the descriptor of each place into its own rule', () => {
    const ops = plan().ops
    for (const [index] of paths.entries()) {
      const open = ops[1 + 2 * index]
      expect(ops[2 + 2 * index]?.patch).toEqual([{ arg: 2, offset: 8, slot: open?.store }])
    }
  })

  it.each([
    [1, 8, 13],
    [2, 8, 14],
    [3, 8, 15],
    [4, 16, 15],
    [5, 16, 16],
    [6, 24, 16],
    [7, 24, 16],
    [9, 24, 17],
    [99, 24, 17],
  ])('handles for ABI %i a structure of %i bytes and %i file rights', (abi, size, rights) => {
    const attr = plan({ abi }).ops[0]?.args[0]
    expect(bytesOf(attr).byteLength).toBe(size)
    const bits = bytesOf(attr).getBigUint64(0, true)
    expect(FS_RIGHTS.filter((right) => (bits & right.bit) !== 0n)).toHaveLength(rights)
    expect(bits).toBe(rightsOf(FS_RIGHTS, Math.min(abi, NEWEST_ABI)))
  })

  it('never lets anybody make devices, and gives files no right that is for directories', () => {
    expect(allowed('/home/u/app')).not.toContain('MAKE_CHAR')
    expect(allowed('/home/u/app')).not.toContain('MAKE_BLOCK')
    expect(allowed('/usr')).toEqual(['EXECUTE', 'READ_FILE', 'READ_DIR'])
    expect(allowed('/dev/null')).toEqual(['WRITE_FILE', 'READ_FILE', 'TRUNCATE', 'IOCTL_DEV'])
  })

  it('takes the right to execute from writable places when the profile lists what may run', () => {
    const listed = profile({ exec: { allow: [{ path: '/usr/bin', why: 'w' }], deny: [] } })
    expect(allowed('/home/u/app')).toContain('EXECUTE')
    expect(allowed('/home/u/app', { profile: listed })).not.toContain('EXECUTE')
    expect(allowed('/usr', { profile: listed })).toContain('EXECUTE')
  })

  it('logs denials after exec where the ABI can, and not our own tries before it', () => {
    expect(plan({ abi: 6 }).ops.at(-1)?.args[1]).toBe(0)
    expect(plan({ abi: 7 }).ops.at(-1)?.args[1]).toBe(BEFORE | AFTER)
  })
})

describe('TCP', () => {
  it('is denied without a network, limited to ports under strict, else left to the namespace', () => {
    expect(tcpPorts(profile({ network: network({ mode: 'none' }) }))).toEqual([])
    expect(tcpPorts(profile({ seccomp: 'strict', network: network({ ports: [8443] }) }))).toEqual([
      53, 80, 443, 3128, 8443,
    ])
    expect(tcpPorts(profile())).toBe('any')
  })

  it('handles bind and connect and lists only ports to connect to', () => {
    const { ops } = plan({ profile: profile({ seccomp: 'strict' }) })
    expect(bytesOf(ops[0]?.args[0]).getBigUint64(8, true)).toBe(3n)
    const rules = ops.filter((op) => op.name.startsWith('allow TCP')).map((op) => bytesOf(op.args[2]))
    expect(rules.map((rule) => Number(rule.getBigUint64(8, true)))).toEqual([53, 80, 443, 3128])
    expect(rules.every((rule) => rule.getBigUint64(0, true) === 2n)).toBe(true)
  })
})

describe('what was granted', () => {
  it('is full on ABI 7', () => expect(plan().grants.every((grant) => grant.full)).toBe(true))

  it('names what an older kernel lacks', () => {
    const grants = plan({ abi: 2, profile: profile({ network: network({ mode: 'none' }) }) }).grants
    expect(grants.map((grant) => [grant.what, grant.granted, grant.full])).toEqual([
      ['landlock files', 'all but TRUNCATE, IOCTL_DEV', false],
      ['landlock tcp', 'nothing', false],
      ['landlock scopes', 'nothing', false],
    ])
  })

  it('is nothing without Landlock, and no operation is planned', () => {
    const none = plan({ abi: 0 })
    expect(none.ops).toEqual([])
    expect(none.grants.map((grant) => grant.granted)).toEqual(['nothing', 'nothing'])
  })

  it.each([0, 2, 5])('is a refusal on ABI %i when the profile requires it', (abi) => {
    expect(() => plan({ abi, profile: profile({ require: ['landlock'] }) })).toThrow(
      expect.objectContaining({ code: 'feature-missing', message: expect.stringContaining(`ABI ${abi}`) }),
    )
  })

  it('is no refusal where everything is there', () => {
    expect(plan({ profile: profile({ require: ['landlock'] }) }).ops.length).toBeGreaterThan(0)
  })
})
