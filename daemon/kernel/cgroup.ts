import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { PressureResource, PressureShares } from '../contract/engine.ts'
import { errnoOf } from '../lib/errors.ts'
import { readMounts } from './mount.ts'
import { O_CLOEXEC, O_DIRECTORY, O_RDONLY } from './uapi/index.ts'

/** The controllers that a branch uses. A hierarchy without any still freezes and kills. */
export const CONTROLLERS = ['cpu', 'memory', 'io', 'pids'] as const
export type Controller = (typeof CONTROLLERS)[number]

/** Where cgroup v2 is mounted; of several mounts the last, which is the one that is seen. */
export function cgroupHierarchy(): string | undefined {
  return readMounts()
    .filter((entry) => entry.type === 'cgroup2')
    .at(-1)
    ?.target.toString('utf8')
}

/** Names in a file of a cgroup; a file that does not exist (or a cgroup that is gone) has none. */
function words(path: string, file: string): string[] {
  return read(path, file).split(/\s+/).filter(Boolean)
}

function read(path: string, file: string): string {
  try {
    return readFileSync(join(path, file), 'utf8')
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT' || errno === 'ENODEV' || errno === 'ESRCH') return ''
    throw error
  }
}

/** `key value` lines; absent keys are absent, not zero. */
function table(path: string, file: string): ReadonlyMap<string, number> {
  const lines = read(path, file).trim().split('\n').filter(Boolean)
  return new Map(lines.map((line) => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])]))
}

function number(path: string, file: string): number | null {
  const text = read(path, file).trim()
  return text === '' || text === 'max' ? null : Number(text)
}

export const controllersOf = (path: string): Controller[] =>
  CONTROLLERS.filter((name) => words(path, 'cgroup.controllers').includes(name))

/** Hands a cgroup's controllers on to its children; those that are refused stay off and are not in the result. */
export function enableControllers(path: string): Controller[] {
  for (const name of controllersOf(path)) {
    try {
      writeFileSync(join(path, 'cgroup.subtree_control'), `+${name}`)
    } catch (error) {
      // Held by cgroup v1, or processes live in this cgroup: the controller cannot be had, and the caller learns so.
      if (!['EBUSY', 'ENOENT', 'EINVAL', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error
    }
  }
  return CONTROLLERS.filter((name) => words(path, 'cgroup.subtree_control').includes(name))
}

/** Makes the cgroup and those above it; an existing one is kept. */
export const createCgroup = (path: string): void => {
  mkdirSync(path, { recursive: true, mode: 0o755 })
}

/** For CLONE_INTO_CGROUP. */
export const openCgroup = (path: string): number => openSync(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/** What is asked of a cgroup whose processes are gone. */
export interface CgroupAccount {
  readonly cpuUserMicros: number
  readonly cpuSystemMicros: number
  readonly memoryPeakBytes: number | null
}

export interface CgroupUsage {
  readonly cpuUserMicros: number
  readonly cpuSystemMicros: number
  /** What the kernel cannot take back by itself; null without the memory controller. */
  readonly memoryBytes: number | null
  readonly processes: number
}

export function cgroupUsage(path: string): CgroupUsage {
  const cpu = table(path, 'cpu.stat')
  return {
    cpuUserMicros: cpu.get('user_usec') ?? 0,
    cpuSystemMicros: cpu.get('system_usec') ?? 0,
    memoryBytes: heldMemory(path),
    processes: number(path, 'pids.current') ?? processesOf(path).length,
  }
}

export function cgroupAccount(path: string): CgroupAccount {
  const cpu = table(path, 'cpu.stat')
  // Asked first: an exception for a missing file costs more than the question.
  const memory = existsSync(join(path, 'memory.events'))
  return {
    cpuUserMicros: cpu.get('user_usec') ?? 0,
    cpuSystemMicros: cpu.get('system_usec') ?? 0,
    memoryPeakBytes: memory ? number(path, 'memory.peak') : null,
  }
}

/** Processes of this cgroup that were ended for want of memory; not those of one beside it. */
export function oomKillsOf(path: string): number {
  const counted = existsSync(join(path, 'memory.events')) ? path : dirname(path)
  return existsSync(join(counted, 'memory.events'))
    ? (table(counted, 'memory.events').get('oom_kill') ?? 0)
    : 0
}

/**
 * Files that were read or written count as memory of the cgroup until the kernel needs the room: an agent that reads
 * much has not used up its budget.
 */
function heldMemory(path: string): number | null {
  const current = number(path, 'memory.current')
  if (current === null) return null
  const stat = table(path, 'memory.stat')
  const cache = Math.max(0, (stat.get('file') ?? 0) - (stat.get('shmem') ?? 0))
  return Math.max(0, current - cache - (stat.get('slab_reclaimable') ?? 0))
}

/** Processes of the cgroup and of those beneath it. */
export function processesOf(path: string): number[] {
  return [path, ...descendants(path)].flatMap((group) => words(group, 'cgroup.procs').map(Number))
}

/** A cgroup may go at any moment (systemd removes an empty scope at once); one that is gone has nothing beneath it. */
function descendants(path: string): string[] {
  return foldersIn(path).flatMap((name) => [join(path, name), ...descendants(join(path, name))])
}

function foldersIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? entry.name : [],
    )
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT' || errno === 'ENODEV') return []
    throw error
  }
}

const PAGE_BYTES = 4096
const STATM_RESIDENT = 1
const STATM_SHARED = 2

/**
 * What the processes hold in memory of their own, for hosts without the memory controller. Less exact (page tables and
 * files in memory are not in it), and a process that is gone in the meantime counts nothing.
 */
export function privateMemoryOf(path: string): number {
  const pages = processesOf(path).map((pid) => {
    const fields = read('/proc', `${pid}/statm`).split(' ').map(Number)
    return Math.max(0, (fields[STATM_RESIDENT] ?? 0) - (fields[STATM_SHARED] ?? 0))
  })
  return pages.reduce((sum, count) => sum + count, 0) * PAGE_BYTES
}

/** The most that one of the processes has held in memory at any time; 0 when all are gone. */
export function peakMemoryOf(path: string): number {
  const peaks = processesOf(path).map((pid) =>
    Number(/^VmHWM:\s+(\d+) kB$/m.exec(read('/proc', `${pid}/status`))?.[1] ?? 0),
  )
  return Math.max(0, ...peaks) * 1024
}

/** Pressure stall information of the last ten seconds; null where the kernel has none. */
export function pressureOf(path: string, resource: PressureResource): PressureShares | null {
  const text = read(path, `${resource}.pressure`)
  const average = (kind: string): number => Number(new RegExp(`${kind} avg10=([0-9.]+)`).exec(text)?.[1] ?? 0)
  return text === '' ? null : { some10: average('some'), full10: average('full') }
}

const isPopulated = (path: string): boolean => table(path, 'cgroup.events').get('populated') === 1
export const isFrozen = (path: string): boolean => table(path, 'cgroup.events').get('frozen') === 1

/** Polls with growing pauses: kernfs says that something changed but not what, and most waits end in the first millisecond. */
async function until(condition: () => boolean, milliseconds: number): Promise<boolean> {
  const end = performance.now() + milliseconds
  for (let pause = 1; !condition(); pause = Math.min(pause * 2, 50)) {
    if (performance.now() > end) return false
    await delay(pause)
  }
  return true
}

/** True when every process stands still. A process in uninterruptible sleep stops only when it wakes. */
export async function freezeCgroup(path: string, milliseconds = 5000): Promise<boolean> {
  writeFileSync(join(path, 'cgroup.freeze'), '1')
  return await until(() => isFrozen(path) || !isPopulated(path), milliseconds)
}

export async function thawCgroup(path: string, milliseconds = 5000): Promise<boolean> {
  writeFileSync(join(path, 'cgroup.freeze'), '0')
  return await until(() => !isFrozen(path), milliseconds)
}

/** Kills everything in the cgroup at once, frozen or not, and says truthfully what did not go away in time. */
export async function killCgroup(
  path: string,
  milliseconds = 5000,
): Promise<{ terminated: number; survivors: number }> {
  if (!isPopulated(path)) return { terminated: 0, survivors: 0 }
  const before = processesOf(path).length
  try {
    writeFileSync(join(path, 'cgroup.kill'), '1')
  } catch (error) {
    // Removed in the meantime, so nothing is in it.
    if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENODEV') throw error
  }
  await until(() => !isPopulated(path), milliseconds)
  const survivors = processesOf(path).length
  return { terminated: Math.max(0, before - survivors), survivors }
}

/** Removes the cgroup and those beneath it; false while a process is left. An absent one is removed already. */
export function removeCgroup(path: string): boolean {
  for (const group of [...descendants(path).reverse(), path]) {
    try {
      rmdirSync(group)
    } catch (error) {
      if (errnoOf(error) === 'EBUSY') return false
      if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENODEV') throw error
    }
  }
  return true
}
