// pure
import type { Profile } from '../contract/profile.ts'
import type { SpawnOp } from '../contract/spawn.ts'
import {
  RLIMIT_CORE,
  RLIMIT_FSIZE,
  RLIMIT_MEMLOCK,
  RLIMIT_NOFILE,
  RLIMIT_NPROC,
  RLIMIT_STACK,
} from '../kernel/uapi/index.ts'
import { call } from './calls.ts'

const RESOURCES = {
  nofile: RLIMIT_NOFILE,
  fsize: RLIMIT_FSIZE,
  stack: RLIMIT_STACK,
  nproc: RLIMIT_NPROC,
  memlock: RLIMIT_MEMLOCK,
} as const

/** `struct rlimit64`: soft and hard alike, so that the agent cannot raise what it was given. */
const rlimit = (value: number): Uint8Array => {
  const bytes = new Uint8Array(16)
  const view = new DataView(bytes.buffer)
  view.setBigUint64(0, BigInt(value), true)
  view.setBigUint64(8, BigInt(value), true)
  return bytes
}

/**
 * No core files ever: a core pattern is the host's and may be a program that runs as root. The rest as the profile says.
 */
export function resourceLimitOps(rlimits: Profile['rlimits']): SpawnOp[] {
  const set = (name: string, resource: number, value: number): SpawnOp =>
    call(`limit ${name} to ${value}`, 'prlimit64', 0, resource, rlimit(value), null)
  return [
    set('core', RLIMIT_CORE, 0),
    ...Object.entries(RESOURCES).flatMap(([name, resource]) => {
      const value = rlimits[name as keyof typeof RESOURCES]
      return value === undefined ? [] : [set(name, resource, value)]
    }),
  ]
}
