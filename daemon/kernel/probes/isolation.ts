import { closeSync } from 'node:fs'
import type { SpawnOp } from '../../contract/spawn.ts'
import { type Finding, landlockRestriction } from '../feature-text.ts'
import { loadLibrary } from '../ffi.ts'
import { createRuleset, landlockAbi, landlockErrata } from '../landlock.ts'
import { pidfdGetfd, pidfdOpen, pidfdSendSignal } from '../pidfd.ts'
import {
  AF_INET,
  AF_NETLINK,
  BPF_ABS,
  BPF_JEQ,
  BPF_JMP,
  BPF_K,
  BPF_LD,
  BPF_RET,
  BPF_W,
  FSCONFIG_CMD_CREATE,
  IFF_RUNNING,
  IFF_UP,
  ifreq,
  LANDLOCK_ACCESS_FS_READ_DIR,
  MSG_DONTWAIT,
  NETLINK_NETFILTER,
  NR,
  O_DIRECTORY,
  PR_SET_NO_NEW_PRIVS,
  SECCOMP_FILTER_FLAG_NEW_LISTENER,
  SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
  SECCOMP_IOCTL_NOTIF_ID_VALID,
  SECCOMP_RET_ALLOW,
  SECCOMP_RET_ERRNO,
  SECCOMP_RET_USER_NOTIF,
  SECCOMP_SET_MODE_FILTER,
  SIOCSIFFLAGS,
  SOCK_DGRAM,
  SOCK_RAW,
  sock_fprog,
} from '../uapi/index.ts'
import { failedCall, mapOwnIds, op, text } from './calls.ts'

export const noNewPrivileges = (): SpawnOp => op('prctl', [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0])

/** A ruleset that denies reading directories, and then "/" cannot be read. */
export async function probeLandlock(): Promise<Finding> {
  const abi = landlockAbi()
  if (abi === 0) return { level: 0, detail: 'landlock_create_ruleset: not in this kernel or not in lsm=' }
  const ruleset = createRuleset(1, { fs: BigInt(LANDLOCK_ACCESS_FS_READ_DIR), net: 0n, scoped: 0n })
  try {
    const failed = await failedCall(
      [],
      [
        noNewPrivileges(),
        op('landlock_restrict_self', [ruleset, 0]),
        op('openat', [-100, text('/'), O_DIRECTORY], { expect: { errno: 'EACCES' } }),
      ],
    )
    if (failed !== undefined) return { level: 0, detail: failed }
  } finally {
    closeSync(ruleset)
  }
  const restriction = landlockRestriction(abi)
  const errata = landlockErrata()
  const detail = errata.length === 0 ? `ABI ${abi}` : `ABI ${abi}, mended faults ${errata.join(', ')}`
  return { level: abi, detail, ...(restriction === undefined ? {} : { restriction }) }
}

/** `getppid` gets this answer, everything else is allowed. */
export function filterFor(action: number): SpawnOp['args'][number] {
  const instructions = [
    [BPF_LD | BPF_W | BPF_ABS, 0, 0, 0],
    [BPF_JMP | BPF_JEQ | BPF_K, 0, 1, NR.getppid],
    [BPF_RET | BPF_K, 0, 0, action],
    [BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW],
  ] as const
  const program = Buffer.alloc(instructions.length * 8)
  instructions.forEach(([code, jumpTrue, jumpFalse, k], index) => {
    program.writeUInt16LE(code, index * 8)
    program.writeUInt8(jumpTrue, index * 8 + 2)
    program.writeUInt8(jumpFalse, index * 8 + 3)
    program.writeUInt32LE(k, index * 8 + 4)
  })
  const struct = Buffer.alloc(sock_fprog.size)
  struct.writeUInt16LE(instructions.length, sock_fprog.len)
  return { struct, pointers: [{ offset: sock_fprog.filter, to: program }] }
}

export async function probeSeccomp(): Promise<Finding> {
  const failed = await failedCall(
    [],
    [
      noNewPrivileges(),
      op('seccomp', [SECCOMP_SET_MODE_FILTER, 0, filterFor(SECCOMP_RET_ERRNO | 1)]),
      op('getppid', [], { expect: { errno: 'EPERM' } }),
    ],
  )
  if (failed !== undefined) return { level: 0, detail: failed }
  loadLibrary('libseccomp.so.2', 'libseccomp2')
  return { level: 1, detail: 'a filter refused a call; libseccomp.so.2 is there' }
}

/** A listener that answers: it knows no notification with the number 0. */
export async function probeSeccompNotify(): Promise<Finding> {
  const listen = (flags: number) =>
    failedCall(
      [],
      [
        noNewPrivileges(),
        op('seccomp', [SECCOMP_SET_MODE_FILTER, flags, filterFor(SECCOMP_RET_USER_NOTIF)], {
          store: 'listener',
        }),
        op('ioctl', [{ slot: 'listener' }, SECCOMP_IOCTL_NOTIF_ID_VALID, Buffer.alloc(8)], {
          expect: { errno: 'ENOENT' },
        }),
      ],
    )
  const failed = await listen(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
  if (failed === undefined) return { level: 2, detail: 'a listener answers, with WAIT_KILLABLE_RECV' }
  const older = await listen(SECCOMP_FILTER_FLAG_NEW_LISTENER)
  if (older !== undefined) return { level: 0, detail: older }
  return {
    level: 1,
    detail: 'a listener answers, without WAIT_KILLABLE_RECV',
    restriction: 'An agent that is signalled while a call waits may repeat the call.',
  }
}

/** Without root, other namespaces can be had inside a user namespace only. */
const privileged = process.geteuid?.() === 0
const within = privileged ? ([] as const) : (['NEWUSER'] as const)

export async function probeNetns(): Promise<Finding> {
  const request = Buffer.alloc(ifreq.size)
  request.write('lo')
  request.writeUInt16LE(IFF_UP | IFF_RUNNING, ifreq.ifr_ifru)
  const failed = await failedCall(
    [...within, 'NEWNET'],
    [
      op('socket', [AF_INET, SOCK_DGRAM, 0], { store: 'socket' }),
      op('ioctl', [{ slot: 'socket' }, SIOCSIFFLAGS, request]),
    ],
  )
  return failed === undefined
    ? { level: 1, detail: 'a new network namespace with its loopback up' }
    : { level: 0, detail: failed }
}

/** One transaction that makes a table, in a network namespace that ends with the child. */
function tableTransaction(): Buffer {
  const message = (type: number, flags: number, family: number, resource: number, attributes: Buffer) => {
    const bytes = Buffer.alloc(20)
    bytes.writeUInt32LE(20 + attributes.length, 0)
    bytes.writeUInt16LE(type, 4)
    bytes.writeUInt16LE(flags, 6)
    bytes.writeUInt8(family, 16)
    bytes.writeUInt16BE(resource, 18)
    return Buffer.concat([bytes, attributes])
  }
  const [REQUEST, ACK, CREATE, SUBSYSTEM, INET] = [1, 4, 0x400, 10, 1]
  // NFTA_TABLE_NAME, ten bytes, padded to twelve.
  const name = Buffer.concat([Buffer.from([10, 0, 1, 0]), Buffer.from('probe\0\0\0')])
  return Buffer.concat([
    message(0x10, REQUEST, 0, SUBSYSTEM, Buffer.alloc(0)),
    message(SUBSYSTEM << 8, REQUEST | ACK | CREATE, INET, 0, name),
    message(0x11, REQUEST, 0, SUBSYSTEM, Buffer.alloc(0)),
  ])
}

export async function probeNftables(): Promise<Finding> {
  const [batch, answer] = [tableTransaction(), Buffer.alloc(4096)]
  const failed = await failedCall(
    [...within, 'NEWNET'],
    [
      op('socket', [AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER], { store: 'socket', name: 'netlink socket' }),
      op('sendto', [{ slot: 'socket' }, batch, batch.length, 0, null, 0]),
      op('recvfrom', [{ slot: 'socket' }, answer, answer.length, MSG_DONTWAIT, null, null]),
    ],
  )
  if (failed !== undefined) return { level: 0, detail: failed }
  // struct nlmsgerr: the acknowledgement of the kernel is an error of 0.
  const error = answer.readInt32LE(16)
  if (error !== 0) return { level: 0, detail: `a table cannot be made: errno ${-error}` }
  loadLibrary('libnftables.so.1', 'libnftables1')
  return { level: 1, detail: 'a table was made in a new namespace; libnftables.so.1 is there' }
}

/** Some systems allow the namespace and then forbid everything in it, so a mount is tried. */
export async function probeUserNamespaces(): Promise<Finding> {
  const failed = await failedCall(
    ['NEWUSER', 'NEWNS'],
    [
      ...mapOwnIds(),
      op('fsopen', [text('tmpfs'), 0], { store: 'tmpfs', name: 'fsopen tmpfs in a user namespace' }),
      op('fsconfig', [{ slot: 'tmpfs' }, FSCONFIG_CMD_CREATE, null, null, 0]),
    ],
  )
  return failed === undefined
    ? { level: 1, detail: 'a user namespace in which a tmpfs can be mounted' }
    : { level: 0, detail: failed }
}

export function probePidfd(): Finding {
  const self = pidfdOpen(process.pid)
  try {
    pidfdSendSignal(self, 0)
    closeSync(pidfdGetfd(self, self))
  } finally {
    closeSync(self)
  }
  return { level: 1, detail: 'opened, signalled and duplicated from' }
}
