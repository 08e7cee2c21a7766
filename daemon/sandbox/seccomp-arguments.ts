// pure
import type { Condition } from '../kernel/seccomp-filter.ts'
import { PROGRAMS, type SeccompProgram } from './seccomp-calls.ts'

/** A system call that is allowed in general and refused with these arguments. */
export interface ArgumentRow {
  readonly call: string
  readonly when: readonly Condition[]
  /** `nothing`: the call does nothing and says that it succeeded. */
  readonly errno: 'EPERM' | 'ENOSYS' | 'EAFNOSUPPORT' | 'EPROTONOSUPPORT' | 'ENOPROTOOPT' | 'nothing'
  readonly programs: readonly SeccompProgram[]
  readonly why: string
}

const refuse = (
  call: string,
  why: string,
  when: readonly Condition[],
  errno: ArgumentRow['errno'] = 'EPERM',
  programs: readonly SeccompProgram[] = PROGRAMS,
): ArgumentRow => ({ call, when, errno, programs, why })

const has = (arg: number, bit: number): Condition => ({ arg, op: 'masked', mask: bit, value: bit })
const is = (arg: number, value: number): Condition => ({ arg, op: 'eq', value })
/** For `int` arguments: the kernel ignores the upper half, so the filter must, too (flatpak CVE-2019-10063). */
const low = (arg: number, value: number): Condition => ({ arg, op: 'low', value })

const NAMESPACES: Readonly<Record<string, number>> = {
  mount: 0x00020000,
  cgroup: 0x02000000,
  UTS: 0x04000000,
  IPC: 0x08000000,
  user: 0x10000000,
  PID: 0x20000000,
  network: 0x40000000,
}
const CLONE_NEWTIME = 0x80

const namespaces: ArgumentRow[] = [
  ...Object.entries(NAMESPACES).flatMap(([kind, bit]) => [
    refuse('clone', `makes a ${kind} namespace`, [has(0, bit)]),
    refuse('unshare', `makes a ${kind} namespace`, [has(0, bit)]),
  ]),
  // clone cannot make one: there the bit belongs to the exit signal.
  refuse('unshare', 'makes a time namespace', [has(0, CLONE_NEWTIME)]),
]

const requests: ArgumentRow[] = [
  refuse('ioctl', 'TIOCSTI types into the terminal', [low(1, 0x5412)]),
  refuse('ioctl', 'TIOCLINUX pastes into the console', [low(1, 0x541c)]),
  refuse('ioctl', 'TIOCCONS takes the console output', [low(1, 0x541d)]),
  refuse('ioctl', 'TIOCSETD loads line disciplines: rarely used drivers', [low(1, 0x5423)]),
  refuse('ioctl', 'FS_IOC_FSSETXATTR sets the project id: a way out of the disk quota', [low(1, 0x401c5820)]),
  refuse('ioctl', 'FS_IOC_SETFLAGS clears project inheritance: the same way out', [low(1, 0x40086602)]),
  refuse('ioctl', 'FS_IOC32_SETFLAGS, the same', [low(1, 0x40046602)]),
]

const CORE = 4
/** `ulimit -c 0` is in many scripts, and what it asks for is so already: there is no core. */
const cores: ArgumentRow[] = [
  refuse('setrlimit', 'a core limit of 0 would let core handlers run', [low(0, CORE)], 'nothing'),
  refuse(
    'prlimit64',
    'a core limit of 0 would let core handlers run; asking is allowed',
    [low(1, CORE), { arg: 2, op: 'ne', value: 0 }],
    'nothing',
  ),
]

const AF = { INET: 2, INET6: 10, NETLINK: 16 } as const
/** AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK are left; everything else loads drivers or leaves the namespace (vsock). */
const OTHER_FAMILIES = [3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15]
const SOCKET_TYPES = { RAW: 3, RDM: 4, SEQPACKET: 5, DCCP: 6, PACKET: 10 } as const
const TYPE_MASK = 0xf
const IPPROTO_ICMPV6 = 58
const TCP_ULP = { level: 6, option: 31 } as const

const sockets: ArgumentRow[] = [
  ...['socket', 'socketpair'].flatMap((call) => [
    ...OTHER_FAMILIES.map((family) =>
      refuse(call, `family ${family} is not for agents`, [is(0, family)], 'EAFNOSUPPORT'),
    ),
    refuse(
      call,
      'packet, vsock, alg, xdp and all other families',
      [{ arg: 0, op: 'gt', value: AF.NETLINK }],
      'EAFNOSUPPORT',
    ),
  ]),
  refuse('socket', 'netlink: kernel configuration', [is(0, AF.NETLINK)], 'EAFNOSUPPORT', ['strict']),
  refuse(
    'socket',
    'netlink other than routes (which getaddrinfo and interface lists read)',
    [is(0, AF.NETLINK), { arg: 2, op: 'ne', value: 0 }],
    'EPROTONOSUPPORT',
    ['standard', 'build'],
  ),
  ...[AF.INET, AF.INET6].flatMap((family) => [
    ...Object.entries(SOCKET_TYPES).map(([type, value]) =>
      refuse('socket', `${type.toLowerCase()} sockets go around the proxy`, [
        is(0, family),
        { arg: 1, op: 'masked', mask: TYPE_MASK, value },
      ]),
    ),
    refuse(
      'socket',
      'MPTCP, SCTP, UDP-Lite, L2TP, SMC: Landlock and the proxy know TCP and UDP',
      [is(0, family), { arg: 2, op: 'gt', value: IPPROTO_ICMPV6 }],
      'EPROTONOSUPPORT',
    ),
  ]),
  refuse(
    'setsockopt',
    'TCP_ULP puts kernel TLS and friends on a socket',
    [low(1, TCP_ULP.level), low(2, TCP_ULP.option)],
    'ENOPROTOOPT',
  ),
]

const TYPE_BITS = 0o170000
const MODE_ARGUMENT = { mknod: 1, mknodat: 2 } as const
const devices: ArgumentRow[] = Object.entries(MODE_ARGUMENT).flatMap(([call, arg]) => [
  refuse(call, 'character devices', [{ arg, op: 'masked', mask: TYPE_BITS, value: 0o020000 }]),
  refuse(call, 'block devices', [{ arg, op: 'masked', mask: TYPE_BITS, value: 0o060000 }]),
])

const O_CREAT = 0o100
const SET_IDS: Readonly<Record<string, number>> = { setuid: 0o4000, setgid: 0o2000 }
/** Elsewhere these bits are taken off at commit; every mount is nosuid in any case. */
const setIds: ArgumentRow[] = Object.entries(SET_IDS).flatMap(([kind, bit]) => {
  const why = `${kind} files are not for untrusted commands`
  const strict = (call: string, when: readonly Condition[]) => refuse(call, why, when, 'EPERM', ['strict'])
  return [
    strict('chmod', [has(1, bit)]),
    strict('fchmod', [has(1, bit)]),
    strict('fchmodat', [has(2, bit)]),
    strict('fchmodat2', [has(2, bit)]),
    strict('mknod', [has(1, bit)]),
    strict('mknodat', [has(2, bit)]),
    strict('creat', [has(1, bit)]),
    // The mode of open is whatever the register held unless a file is created.
    strict('open', [has(1, O_CREAT), has(2, bit)]),
    strict('openat', [has(2, O_CREAT), has(3, bit)]),
  ]
})

const ADDR_NO_RANDOMIZE = 0x00040000
const ASK = 0xffffffff

export const ARGUMENTS: readonly ArgumentRow[] = [
  ...namespaces,
  ...requests,
  ...cores,
  ...sockets,
  ...devices,
  ...setIds,
]

/** Calls that are allowed with these values of argument 0 only; with others they do not exist (ENOSYS). */
export const ONLY_WITH: Readonly<Record<string, Readonly<Record<SeccompProgram, readonly number[]>>>> = {
  // Asking, plain Linux, and what debuggers and reproducible builds set.
  personality: { strict: [0, ASK], standard: [0, ASK], build: [0, ASK, ADDR_NO_RANDOMIZE] },
}

const MFD_NOEXEC_SEAL = 8
/** Added where the profile lists what may be executed: an anonymous file would be outside of the list. */
export const SEALED_MEMFD: ArgumentRow = refuse('memfd_create', 'an anonymous file that could be executed', [
  { arg: 1, op: 'masked', mask: MFD_NOEXEC_SEAL, value: 0 },
])
