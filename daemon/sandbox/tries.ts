// pure
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import { keep } from './kept-ops.ts'

/**
 * Doors that are tried after they were locked. Each entry must fail with exactly this errno, or the agent is not
 * started: an answer other than the expected one means that a lock is not the one we think it is.
 */
const door = (name: string, errno: string, call: string, ...args: SpawnArg[]): SpawnOp => ({
  name: `try to ${name}`,
  call,
  args,
  expect: { errno },
})

const CLONE_NEWUSER = 0x10000000
const CLONE_NEWNS = 0x00020000
const MS_BIND = 4096
const AT_FDCWD = -100
const text = (value: string): Uint8Array => Buffer.from(`${value}\0`, 'utf8')

/**
 * Locked by the empty capability sets and Landlock; tried before seccomp, which would answer in their place.
 * `uid` is the agent's: going back to root is tried only when it is not 0 itself (a user namespace's root).
 */
export function lockedByCapabilities(uid: number): readonly SpawnOp[] {
  return [
    door('mount', 'EPERM', 'mount', text('/'), text('/'), null, MS_BIND, null),
    door('change the hostname', 'EPERM', 'sethostname', text('x'), 1),
    door('make a mount namespace', 'EPERM', 'unshare', CLONE_NEWNS),
    door('change the root', 'EPERM', 'chroot', text('/')),
    ...(uid === 0 ? [] : [door('become root', 'EPERM', 'setresuid', 0, 0, 0)]),
    ...(uid === 0 ? [] : [door('join a group', 'EPERM', 'setgroups', 1, new Uint8Array(4))]),
  ]
}

/** Locked by seccomp; tried between it and exec. Every program denies these. */
export const lockedBySeccomp = (): readonly SpawnOp[] => BY_SECCOMP

const BY_SECCOMP = keep([
  door('make a user namespace', 'EPERM', 'unshare', CLONE_NEWUSER),
  door('call clone3', 'ENOSYS', 'clone3', null, 0),
  door('trace a process', 'EPERM', 'ptrace', 0, 0, 0, 0),
  door('load a BPF program', 'EPERM', 'bpf', 0, null, 0),
  door('set up io_uring', 'EPERM', 'io_uring_setup', 1, null),
  door('use the keyring', 'EPERM', 'keyctl', 0, 0, 0, 0, 0),
  door('clone a mount', 'EPERM', 'open_tree', AT_FDCWD, text('/'), 1),
  door('watch page faults', 'EPERM', 'userfaultfd', 0),
])
