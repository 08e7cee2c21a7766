// pure
import type { Grant } from '../contract/branch.ts'
import type { FeatureName } from '../contract/features.ts'
import type { BudgetKind, Profile, Resources } from '../contract/profile.ts'
import type { CgroupLimits, IoLimits } from '../kernel/cgroup-limits.ts'
import { PuzzledError } from '../lib/errors.ts'

/** Shares count among siblings, so they belong to the outermost cgroup of a branch. */
export type CgroupShares = Pick<CgroupLimits, 'cpuWeight' | 'ioWeight'>
export type LimitName = keyof CgroupLimits

type LimitedProfile = Pick<Profile, 'budgets' | 'resources' | 'require' | 'name'>

export const sharesOf = ({ cpuWeight, ioWeight }: Resources): CgroupShares => ({
  ...(cpuWeight === undefined ? {} : { cpuWeight }),
  ...(ioWeight === undefined ? {} : { ioWeight }),
})

/**
 * What the controllers are told. An agent that is to be asked about must be alive to be asked: where the profile says
 * `freeze`, it is slowed down a little above its memory budget, so that the meter sees it there, and ended only well above.
 */
export function kernelLimits(
  { budgets, resources }: LimitedProfile,
  devices: readonly string[],
): CgroupLimits {
  const { memory, pids } = budgets.limits
  const { cpus } = resources
  const io = ioLimits(resources, devices)
  return {
    ...(memory === undefined ? {} : memoryLimits(memory, budgets.atLimit, resources.memoryHigh)),
    ...(memory === undefined && resources.memoryHigh !== undefined
      ? { memoryHighBytes: resources.memoryHigh }
      : {}),
    ...(pids === undefined ? {} : { pids }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(io === null ? {} : { io }),
  }
}

const SLOWED = 17 / 16
const ENDED = 5 / 4

function memoryLimits(
  budget: number,
  atLimit: 'freeze' | 'kill',
  high: number | undefined,
): Pick<CgroupLimits, 'memoryBytes' | 'memoryHighBytes'> {
  if (atLimit === 'kill')
    return { memoryBytes: budget, ...(high === undefined ? {} : { memoryHighBytes: high }) }
  const slowed = Math.ceil(budget * SLOWED)
  return { memoryHighBytes: Math.min(slowed, high ?? slowed), memoryBytes: Math.ceil(budget * ENDED) }
}

/** After a person has given more of a budget. Kinds that no controller holds change nothing. */
export function extendedLimits(profile: LimitedProfile, kind: BudgetKind, limit: number): CgroupLimits {
  const { pids } = kind === 'pids' ? { pids: limit } : {}
  if (kind === 'memory') return memoryLimits(limit, profile.budgets.atLimit, profile.resources.memoryHigh)
  return pids === undefined ? {} : { pids }
}

function ioLimits(resources: Resources, devices: readonly string[]): IoLimits | null {
  const { ioRead, ioWrite, ioReadOps, ioWriteOps } = resources
  if ([ioRead, ioWrite, ioReadOps, ioWriteOps].every((rate) => rate === undefined)) return null
  return {
    devices,
    ...(ioRead === undefined ? {} : { readBytes: ioRead }),
    ...(ioWrite === undefined ? {} : { writeBytes: ioWrite }),
    ...(ioReadOps === undefined ? {} : { readOps: ioReadOps }),
    ...(ioWriteOps === undefined ? {} : { writeOps: ioWriteOps }),
  }
}

const TEXT: Readonly<Record<LimitName, { what: string; feature: FeatureName; otherwise: string }>> = {
  memoryBytes: {
    what: 'memory limit',
    feature: 'cgroup2-memory',
    otherwise: 'watched, not enforced by the kernel',
  },
  memoryHighBytes: { what: 'memory brake', feature: 'cgroup2-memory', otherwise: 'none' },
  pids: { what: 'process limit', feature: 'cgroup2-pids', otherwise: 'watched, not enforced by the kernel' },
  cpus: { what: 'processors', feature: 'cgroup2-cpu', otherwise: 'all of them' },
  cpuWeight: { what: 'share of the processors', feature: 'cgroup2-cpu', otherwise: 'like everybody' },
  ioWeight: { what: 'share of the disks', feature: 'cgroup2-io', otherwise: 'like everybody' },
  io: { what: 'disk rates', feature: 'cgroup2-io', otherwise: 'no limit' },
}

/** What was asked of the controllers and what they took: the user is told. */
export function limitGrants(
  profile: LimitedProfile,
  limits: CgroupLimits,
  missing: readonly LimitName[],
): Grant[] {
  return (Object.keys(limits) as LimitName[]).map((name) => {
    const full = !missing.includes(name)
    const asked = name === 'memoryBytes' ? profile.budgets.limits.memory : limits[name]
    const granted = full ? show(limits[name]) : TEXT[name].otherwise
    return { what: TEXT[name].what, requested: show(asked), granted, full }
  })
}

const show = (value: unknown): string =>
  typeof value === 'object' && value !== null
    ? Object.entries(value)
        .map(([key, part]) => `${key} ${Array.isArray(part) ? part.join(' ') || 'none' : String(part)}`)
        .join(', ')
    : String(value)

/**
 * The probe before the fork said that the host has the controller; what counts is whether this limit was taken. A
 * profile that requires the controller is not run without its limits.
 */
export function requireLimits(profile: LimitedProfile, missing: readonly LimitName[]): void {
  for (const name of missing) {
    const { what, feature } = TEXT[name]
    if (!profile.require.includes(feature)) continue
    throw new PuzzledError(
      'feature-missing',
      `Profile "${profile.name}" requires ${feature}: its ${what} cannot be set`,
      {
        hint: 'puzzlectl doctor says what this host can hold; or use a profile that does not require it',
        data: { feature, limit: name },
      },
    )
  }
}

/** What a limit is called, and the feature of the host that holds it. */
export const aboutLimit = (name: LimitName): { what: string; feature: FeatureName } => TEXT[name]
