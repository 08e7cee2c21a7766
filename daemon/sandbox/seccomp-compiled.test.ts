import { describe, expect, it } from 'vitest'
import { AUDIT_ARCH_I386, runFilter, type SystemCall } from '../../test/fakes/bpf-machine.ts'
import { ARGUMENTS } from './seccomp-arguments.ts'
import { PROGRAMS, type SeccompProgram } from './seccomp-calls.ts'
import { COMPILED_X64 } from './seccomp-compiled.ts'
import { allSources, execNotifySource, seccompSources, syscallTable, verdicts } from './seccomp-rules.ts'

const ALLOW = 0x7fff0000
const KILL = 0x80000000
const ERRNO = 0x00050000
const NOTIFY = 0x7fc00000
const EPERM = ERRNO | 1
const ENOSYS = ERRNO | 38
const EAFNOSUPPORT = ERRNO | 97
const X32 = 0x40000000

const table = syscallTable('x64')
const bytes = (name: string): Uint8Array => Buffer.from(COMPILED_X64[name] ?? '', 'base64')
const signed = (answer: number): number => (answer & 0xffff0000) >> 0
/** The strictest answer of the installed filters, as the kernel chooses it (the lowest as a signed number). */
const answer = (program: SeccompProgram, call: SystemCall, sealMemfds = false): number =>
  seccompSources({ program, architecture: 'x64', sealMemfds })
    .map((source) => runFilter(bytes(source.name), call))
    .reduce((a, b) => (signed(b) < signed(a) ? b : a))
const call = (name: string, ...args: (number | bigint)[]): SystemCall => ({
  number: table[name] ?? -1,
  args,
})

describe('the compiled programs', () => {
  it('are all there', () => {
    expect(Object.keys(COMPILED_X64)).toEqual(allSources('x64').map((source) => source.name))
  })

  it.each(PROGRAMS)('%s: answer every number as the policy says', (program) => {
    const judged = verdicts(program)
    const byNumber = new Map(Object.entries(table).map(([name, number]) => [number, name]))
    const personality = table.personality
    for (let number = 0; number < 1024; number++) {
      if (number === personality) continue
      const verdict = judged.get(byNumber.get(number) ?? '') ?? 'ENOSYS'
      // Descriptors and flags that no argument rule refuses; families begin at 1.
      const args = [1, 1, 0, 0, 0, 0]
      const expected = { allow: ALLOW, EPERM, ENOSYS }[verdict]
      expect([number, byNumber.get(number), answer(program, { number, args })]).toEqual([
        number,
        byNumber.get(number),
        expected,
      ])
    }
  })

  it.each(PROGRAMS)(
    '%s: refuse each argument that the policy names, also under a dirty upper half',
    (program) => {
      for (const row of ARGUMENTS.filter((entry) => entry.programs.includes(program))) {
        const args: bigint[] = [1n, 1n, 0n, 0n, 0n, 0n]
        for (const condition of row.when)
          args[condition.arg] =
            BigInt(condition.value) + (condition.op === 'gt' || condition.op === 'ne' ? 1n : 0n)
        const dirty = args.map((value, index) =>
          row.when.some((condition) => condition.arg === index && condition.op !== 'eq')
            ? value | (1n << 32n)
            : value,
        )
        for (const values of [args, dirty])
          expect([row.why, answer(program, call(row.call, ...values)) & 0xffff0000]).toEqual([row.why, ERRNO])
      }
    },
  )

  it.each(PROGRAMS)('%s: end calls of other ABIs', (program) => {
    expect(answer(program, { number: X32 + 1 })).toBe(KILL)
    expect(answer(program, { number: 1, architecture: AUDIT_ARCH_I386 })).toBe(KILL)
    expect(answer(program, { number: 1, args: [1] })).toBe(ALLOW)
  })
})

describe('arguments', () => {
  const AF = { unix: 1, inet: 2, inet6: 10, netlink: 16, packet: 17, alg: 38, vsock: 40, xdp: 44 }
  it.each(PROGRAMS)('%s: families', (program) => {
    for (const family of [AF.unix, AF.inet, AF.inet6])
      expect(answer(program, call('socket', family, 1, 0))).toBe(ALLOW)
    for (const family of [AF.packet, AF.alg, AF.vsock, AF.xdp, 3, 15, 2 ** 32 + AF.packet])
      expect([family, answer(program, call('socket', family, 1, 0))]).toEqual([family, EAFNOSUPPORT])
    expect(answer(program, call('socket', AF.netlink, 3, 0))).toBe(
      program === 'strict' ? EAFNOSUPPORT : ALLOW,
    )
    expect(answer(program, call('socket', AF.netlink, 3, 12)) & 0xffff0000).toBe(ERRNO)
    expect(answer(program, call('socket', AF.inet, 3, 0))).toBe(EPERM)
    expect(answer(program, call('socket', AF.inet, 1, 262)) & 0xffff0000).toBe(ERRNO)
    expect(answer(program, call('socket', AF.inet, 1 | 0o2000000 | 0o4000, 6))).toBe(ALLOW)
  })

  it('let threads and forks through, namespaces not', () => {
    const THREAD = 0x3d0f00
    expect(answer('standard', call('clone', THREAD))).toBe(ALLOW)
    expect(answer('standard', call('clone', 0x01200011))).toBe(ALLOW)
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(answer('standard', call('clone', THREAD | flag))).toBe(EPERM)
      expect(answer('standard', call('unshare', flag))).toBe(EPERM)
    }
    expect(answer('standard', call('unshare', 0x400))).toBe(ALLOW)
    expect(answer('strict', call('unshare', 0x400))).toBe(EPERM)
  })

  it('let terminals and files be asked, not typed into', () => {
    const TCGETS = 0x5401
    expect(answer('build', call('ioctl', 0, TCGETS))).toBe(ALLOW)
    expect(answer('build', call('ioctl', 0, 0x5412n | (1n << 32n)))).toBe(EPERM)
  })

  it('let modes be set, setuid not under strict', () => {
    expect(answer('strict', call('openat', 0, 0, 0o2, 0o7777))).toBe(ALLOW)
    expect(answer('strict', call('openat', 0, 0, 0o102, 0o644))).toBe(ALLOW)
    expect(answer('strict', call('openat', 0, 0, 0o102, 0o4755))).toBe(EPERM)
    expect(answer('strict', call('chmod', 0, 0o2755))).toBe(EPERM)
    expect(answer('standard', call('chmod', 0, 0o4755))).toBe(ALLOW)
  })

  it('let FIFOs and sockets be made, devices not', () => {
    for (const type of [0o010000, 0o140000, 0o100000, 0])
      expect(answer('strict', call('mknodat', 0, 0, type | 0o644, 0))).toBe(ALLOW)
    for (const type of [0o020000, 0o060000])
      expect(answer('build', call('mknodat', 0, 0, type | 0o644, 0))).toBe(EPERM)
  })

  it('let a personality be asked for; only build may switch off randomisation', () => {
    const NO_RANDOMIZE = 0x40000
    for (const program of PROGRAMS) {
      expect(answer(program, call('personality', 0xffffffff))).toBe(ALLOW)
      expect(answer(program, call('personality', 0))).toBe(ALLOW)
      expect(answer(program, call('personality', 8))).toBe(ENOSYS)
      expect(answer(program, call('personality', NO_RANDOMIZE))).toBe(program === 'build' ? ALLOW : ENOSYS)
    }
  })

  it('let the core limit be asked for; setting it does nothing', () => {
    for (const program of PROGRAMS) {
      expect(answer(program, call('prlimit64', 0, 4, 0, 0x7000))).toBe(ALLOW)
      expect(answer(program, call('prlimit64', 0, 7, 0x7000, 0))).toBe(ALLOW)
      for (const set of [call('prlimit64', 0, 4, 0x7000, 0), call('setrlimit', 4, 0x7000)])
        expect(answer(program, set)).toBe(ERRNO)
    }
  })

  it('let anonymous files be made; only sealed ones where executables are listed', () => {
    expect(answer('standard', call('memfd_create', 0, 1))).toBe(ALLOW)
    expect(answer('standard', call('memfd_create', 0, 1), true)).toBe(EPERM)
    expect(answer('standard', call('memfd_create', 0, 9), true)).toBe(ALLOW)
  })

  it('ask before a program is started', () => {
    const filter = bytes(execNotifySource('x64').name)
    expect(runFilter(filter, call('execve'))).toBe(NOTIFY)
    expect(runFilter(filter, call('execveat'))).toBe(NOTIFY)
    expect(runFilter(filter, call('openat'))).toBe(ALLOW)
  })
})
