// pure
import type { SpawnOp } from '../contract/spawn.ts'
import { KeptOps, keep } from './kept-ops.ts'

const PR = {
  SET_DUMPABLE: 4,
  CAPBSET_DROP: 24,
  SET_SECUREBITS: 28,
  SET_NO_NEW_PRIVS: 38,
  CAP_AMBIENT: 47,
} as const
const CAP_AMBIENT_CLEAR_ALL = 4
const CAPABILITY_VERSION_3 = 0x20080522

const SECBIT = {
  NOROOT: 1 << 0,
  NOROOT_LOCKED: 1 << 1,
  NO_SETUID_FIXUP: 1 << 2,
  NO_SETUID_FIXUP_LOCKED: 1 << 3,
  KEEP_CAPS_LOCKED: 1 << 5,
  NO_CAP_AMBIENT_RAISE: 1 << 6,
  NO_CAP_AMBIENT_RAISE_LOCKED: 1 << 7,
} as const

/** What the agent runs with: uid 0 means nothing, changing ids gives and takes nothing, none of it can be undone. */
export const LOCKED_SECUREBITS = Object.values(SECBIT).reduce((bits, bit) => bits | bit, 0)

const prctl = (name: string, ...args: number[]): SpawnOp => ({
  name,
  call: 'prctl',
  args: [...args, 0, 0, 0, 0].slice(0, 5),
  expect: 'ok',
})

/** Between `setresuid` and exec the child still shares the daemon's memory: nobody may trace it (PR_SET_DUMPABLE 0). */
export const undumpableOp = (): SpawnOp => prctl('forbid tracing until exec', PR.SET_DUMPABLE, 0)

/**
 * Comes before the identity change: without it `setresuid` away from root would empty the effective set, and the
 * bounding set and securebits could no longer be changed.
 */
export const capsBeforeIdentityOps = (): readonly SpawnOp[] => [
  prctl('keep capabilities over the identity change', PR.SET_SECUREBITS, SECBIT.NO_SETUID_FIXUP),
]

/**
 * Comes after the identity change: empties bounding, ambient, effective, permitted and inheritable set (in the order in
 * which each is still allowed), locks securebits, sets no_new_privs.
 * `lastCapability` is /proc/sys/kernel/cap_last_cap of the running kernel: a hole would be a capability kept.
 */
export const capsOps = (lastCapability: number): readonly SpawnOp[] =>
  kept.of(String(lastCapability), () => keep(dropOps(lastCapability)))

const kept = new KeptOps<readonly SpawnOp[]>()

function dropOps(lastCapability: number): SpawnOp[] {
  const bounding = Array.from({ length: lastCapability + 1 }, (_, capability) =>
    prctl(`drop capability ${capability} from the bounding set`, PR.CAPBSET_DROP, capability),
  )
  return [
    undumpableOp(),
    ...bounding,
    prctl('clear ambient capabilities', PR.CAP_AMBIENT, CAP_AMBIENT_CLEAR_ALL),
    prctl('lock securebits', PR.SET_SECUREBITS, LOCKED_SECUREBITS),
    {
      name: 'empty all capability sets',
      call: 'capset',
      args: [capHeader(), new Uint8Array(24)],
      expect: 'ok',
    },
    prctl('set no_new_privs', PR.SET_NO_NEW_PRIVS, 1),
  ]
}

/** `struct __user_cap_header_struct`: version 3, the calling thread. */
function capHeader(): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setUint32(0, CAPABILITY_VERSION_3, true)
  return bytes
}
