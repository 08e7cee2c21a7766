import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect } from 'vitest'
import { PROGRAMS } from '../../daemon/sandbox/seccomp-calls.ts'
import { syscallTable, verdicts } from '../../daemon/sandbox/seccomp-rules.ts'
import { requestOf } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, outside, parseReport } from './attack.ts'
import { branchFor, inBranch, launcher } from './harness.ts'

const check = needs(root, program('gcc'))
const onX64 = needs(
  root,
  program('gcc'),
  process.arch === 'x64' ? undefined : 'x32 and int 0x80 exist on x86-64 only',
)

describe('S6 typing into a terminal', () => {
  check('control: outside, the attack types into its own terminal', () => {
    expect(parseReport(outside([attack('terminal'), 'own']))).toMatchObject({
      tiocsti: 'OK',
      'tiocsti-high-bits': 'OK',
      tcgets: 'OK',
    })
  })

  check('the agent has a terminal and cannot, whatever the upper half of the request says', async () => {
    const branch = branchFor()
    copyFileSync(attack('terminal'), join(branch.base, 'terminal'))
    const agent = await launcher.start(
      requestOf(branch, ['./terminal'], { stdio: { kind: 'pty', columns: 80, rows: 24 } }),
    )
    const said = agent.output === undefined ? '' : await text(agent.output)
    await agent.exited
    expect(parseReport(said.replaceAll('\r', ''))).toEqual({
      tiocsti: 'EPERM',
      'tiocsti-high-bits': 'EPERM',
      tioclinux: 'EPERM',
      tiocsetd: 'EPERM',
      tcgets: 'OK',
    })
    expect(said).not.toContain('#')
  })
})

describe('S7 other ABIs', () => {
  onX64('control: outside, the kernel answers them', () => {
    const report = parseReport(outside([attack('abi')]))
    // x32 is rarely built in; then its answer is ENOSYS, which still is an answer and not the end.
    expect(['OK', 'ENOSYS']).toContain(report.x32)
    expect(report).toMatchObject({ int80: 'OK', native: 'OK' })
  })

  onX64.for(PROGRAMS)('under %s they end the process', async (seccomp) => {
    const { report } = await inBranch('abi', [], { profile: { seccomp } })
    expect(report).toEqual({ x32: 'SIGSYS', int80: 'SIGSYS', native: 'OK' })
  })
})

/** S8, S10, S15, S19: what each door answers in a branch, under every program unless said otherwise. */
const DOORS = {
  'unshare-user': 'EPERM',
  'unshare-mount': 'EPERM',
  'unshare-net': 'EPERM',
  'unshare-user-high-bits': 'EPERM',
  'clone-user': 'EPERM',
  'clone-pid': 'EPERM',
  'clone3-user': 'ENOSYS',
  'clone-plain': 'OK',
  setns: 'EPERM',
  io_uring_setup: 'EPERM',
  bpf: 'EPERM',
  userfaultfd: 'EPERM',
  'ptrace-self': 'EPERM',
  keyring: 'EPERM',
  'bind-mount': 'EPERM',
  open_tree: 'EPERM',
  handle: 'EPERM',
  chroot: 'EPERM',
  'setuid-root': 'EPERM',
  sethostname: 'EPERM',
  'mknod-char': 'EPERM',
  'mknod-whiteout': 'EPERM',
  'mknod-block': 'EPERM',
  mkfifo: 'OK',
  'get-attributes': 'OK',
  'set-project': 'EPERM',
  'set-project-high-bits': 'EPERM',
  'set-flags': 'EPERM',
  file_setattr: 'EPERM',
  'trusted-xattr': 'EPERM',
  'capability-xattr': 'EPERM',
  tcp: 'OK',
  udp6: 'OK',
  raw: 'EPERM',
  packet: 'EAFNOSUPPORT',
  'packet-high-bits': 'EAFNOSUPPORT',
  vsock: 'EAFNOSUPPORT',
  alg: 'EAFNOSUPPORT',
  mptcp: 'EPROTONOSUPPORT',
  'netlink-netfilter': 'EPROTONOSUPPORT',
}
const PER_PROGRAM = {
  strict: {
    'chmod-setuid': 'EPERM',
    'netlink-route': 'EAFNOSUPPORT',
    'netlink-netfilter': 'EAFNOSUPPORT',
    'personality-randomize': 'ENOSYS',
  },
  standard: { 'chmod-setuid': 'OK', 'netlink-route': 'OK', 'personality-randomize': 'ENOSYS' },
  build: { 'chmod-setuid': 'OK', 'netlink-route': 'OK', 'personality-randomize': 'OK' },
}

/** Doors that are shut outside as well: the kernel lacks what is behind them, or they need valid content. */
const SHUT_OUTSIDE = [
  'alg',
  'handle',
  'bpf',
  'file_setattr',
  'unshare-user-high-bits',
  'userfaultfd',
  'io_uring_setup',
  'vsock',
  'keyring',
]

describe('S8 namespaces, S10 io_uring, S15 devices, S19 project ids, socket families', () => {
  check('control: outside, the doors are open', () => {
    const report = parseReport(outside([attack('doors')]))
    const shut = Object.entries(report).filter(([, result]) => result !== 'OK')
    expect(shut.map(([name]) => name).filter((name) => !SHUT_OUTSIDE.includes(name))).toEqual([])
    expect(Object.values(report)).not.toContain('EPERM')
    expect(Object.keys(report).sort()).toEqual(
      [...new Set([...Object.keys(DOORS), ...Object.keys(PER_PROGRAM.strict)])].sort(),
    )
  })

  check.for(PROGRAMS)('under %s each answers as the policy says', async (seccomp) => {
    const { report } = await inBranch('doors', [], { profile: { seccomp } })
    expect(report).toEqual({ ...DOORS, ...PER_PROGRAM[seccomp] })
  })
})

describe('S11 forbidden system calls', () => {
  const table = syscallTable(process.arch === 'arm64' ? 'arm64' : 'x64')
  const refused = (seccomp: (typeof PROGRAMS)[number], verdict: string): string[] =>
    [...verdicts(seccomp)].flatMap(([call, said]) => {
      const number = table[call]
      return said === verdict && number !== undefined ? [String(number)] : []
    })
  const all = (numbers: string[], answer: string) =>
    Object.fromEntries(numbers.map((number) => [number, answer]))

  check('control: outside, none of them is refused with EPERM', () => {
    // vhangup takes no argument that could be wrong: it would hang up the terminal of whoever runs this.
    const numbers = refused('strict', 'EPERM').filter((number) => number !== String(table.vhangup))
    const report = parseReport(outside([attack('calls'), ...numbers]))
    expect(Object.entries(report).filter(([, result]) => result === 'EPERM')).toEqual([])
    expect(Object.keys(report)).toHaveLength(numbers.length)
  })

  check.for(PROGRAMS)('under %s every one is, and every unknown one does not exist', async (seccomp) => {
    const forbidden = refused(seccomp, 'EPERM')
    const absent = [...refused(seccomp, 'ENOSYS'), '480', '512', '1023']
    expect(forbidden.length).toBeGreaterThan(40)
    const { report } = await inBranch('calls', [...forbidden, ...absent], { profile: { seccomp } })
    expect(report).toEqual({ ...all(forbidden, 'EPERM'), ...all(absent, 'ENOSYS') })
  })
})
