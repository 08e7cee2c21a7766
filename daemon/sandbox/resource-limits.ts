// pure
import type { Grant } from '../contract/branch.ts'
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
 * No core ever: the core pattern is the host's and may be a program that runs as root, to which the kernel would hand
 * the agent's memory. A limit of 0 stops core files only; at exactly 1 the kernel starts no program either (it takes the
 * crash for that of a core handler), and 1 is less than any file. `seccomp-arguments.ts` keeps it there. The rest as the
 * profile says.
 */
export function resourceLimitOps(rlimits: Profile['rlimits']): SpawnOp[] {
  const set = (name: string, resource: number, value: number): SpawnOp =>
    call(`limit ${name} to ${value}`, 'prlimit64', 0, resource, rlimit(value), null)
  return [
    set('core', RLIMIT_CORE, 1),
    ...Object.entries(RESOURCES).flatMap(([name, resource]) => {
      const value = rlimits[name as keyof typeof RESOURCES]
      return value === undefined ? [] : [set(name, resource, value)]
    }),
  ]
}

/** What our own hard limits are, by the names of `/proc/self/limits`; absent means unlimited. */
export type HardLimits = Readonly<Partial<Record<keyof typeof RESOURCES, number>>>

const LABELS: Readonly<Record<keyof typeof RESOURCES, string>> = {
  nofile: 'Max open files',
  fsize: 'Max file size',
  stack: 'Max stack size',
  nproc: 'Max processes',
  memlock: 'Max locked memory',
}

export function parseHardLimits(text: string): HardLimits {
  const limits: Partial<Record<keyof typeof RESOURCES, number>> = {}
  for (const [name, label] of Object.entries(LABELS)) {
    const [, hard] = new RegExp(`^${label} +\\S+ +(\\d+)`, 'm').exec(text) ?? []
    if (hard !== undefined) limits[name as keyof typeof RESOURCES] = Number(hard)
  }
  return limits
}

const CAP_SYS_RESOURCE = 24n

/** What bounds the limits that we can give: our own hard ones, unless we hold the capability to go beyond them. */
export function boundingLimits(status: string, limits: string): HardLimits {
  const effective = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(status)?.[1] ?? '0'}`)
  return ((effective >> CAP_SYS_RESOURCE) & 1n) === 1n ? {} : parseHardLimits(limits)
}

/** Without CAP_SYS_RESOURCE nobody can be given more than we have: less is granted, and said. */
export function withinHardLimits(
  rlimits: Profile['rlimits'],
  hard: HardLimits,
): { rlimits: Profile['rlimits']; grants: Grant[] } {
  const grants: Grant[] = []
  const within = Object.entries(rlimits).map(([name, asked]) => {
    const most = hard[name as keyof typeof RESOURCES]
    if (most === undefined || asked <= most) return [name, asked]
    grants.push({ what: `limit ${name}`, requested: String(asked), granted: String(most), full: false })
    return [name, most]
  })
  return { rlimits: Object.fromEntries(within), grants }
}
