import { existsSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { errnoOf } from '../lib/errors.ts'

export interface CgroupLimits {
  /** Beyond it the kernel ends the whole cgroup. */
  readonly memoryBytes?: number
  /** Beyond it whoever allocates is slowed down and its memory is taken back. */
  readonly memoryHighBytes?: number
  readonly pids?: number
  /** Processors, may be a fraction. */
  readonly cpus?: number
  /** Shares among siblings, 1 to 10000; a cgroup without one has 100. */
  readonly cpuWeight?: number
  readonly ioWeight?: number
  /** Per second, on each of the devices. */
  readonly io?: IoLimits
}

export interface IoLimits {
  /** `major:minor` of whole disks, see `diskOf`. */
  readonly devices: readonly string[]
  readonly readBytes?: number
  readonly writeBytes?: number
  readonly readOps?: number
  readonly writeOps?: number
}

const CPU_PERIOD_MICROS = 100_000

type File = readonly [name: string, text: string]

/** The files of each limit. It holds when all of them took their text. */
function filesOf(limits: CgroupLimits): [keyof CgroupLimits, readonly File[]][] {
  const { memoryHighBytes, memoryBytes, pids, cpus, cpuWeight, ioWeight, io } = limits
  const quota = (share: number): number => Math.max(1000, Math.round(share * CPU_PERIOD_MICROS))
  const all: [keyof CgroupLimits, readonly File[]][] = [
    ['memoryHighBytes', [['memory.high', String(memoryHighBytes)]]],
    [
      'memoryBytes',
      [
        ['memory.max', String(memoryBytes)],
        ['memory.swap.max', '0'],
        ['memory.oom.group', '1'],
      ],
    ],
    ['pids', [['pids.max', String(pids)]]],
    ['cpus', [['cpu.max', `${quota(cpus ?? 0)} ${CPU_PERIOD_MICROS}`]]],
    ['cpuWeight', [['cpu.weight', String(cpuWeight)]]],
    // One file is for the cost model, the other for the scheduler: which of them acts, depends on the disk.
    [
      'ioWeight',
      [
        ['io.weight', `default ${ioWeight}`],
        ['io.bfq.weight', `default ${bfqWeight(ioWeight ?? 100)}`],
      ],
    ],
    ['io', io === undefined ? [] : io.devices.map((device): File => ['io.max', `${device} ${ioKeys(io)}`])],
  ]
  return all.filter(([name]) => limits[name] !== undefined)
}

/** The scheduler counts to 1000 only; 100 is the usual share of both. As systemd translates it. */
const bfqWeight = (weight: number): number =>
  weight <= 100 ? weight : 100 + Math.round(((weight - 100) * 900) / 9900)

const ioKeys = ({ readBytes, writeBytes, readOps, writeOps }: IoLimits): string =>
  Object.entries({ rbps: readBytes, wbps: writeBytes, riops: readOps, wiops: writeOps })
    .map(([key, value]) => `${key}=${value ?? 'max'}`)
    .join(' ')

/** Writes what the controllers at hand can hold; the result names the limits that nothing enforces. */
export function limitCgroup(path: string, limits: CgroupLimits): (keyof CgroupLimits)[] {
  return filesOf(limits).flatMap(([name, files]) =>
    files.length > 0 && files.every(([file, text]) => put(path, file, text)) ? [] : [name],
  )
}

/** False where the kernel has no such limit. A value that it does not take is an error of ours and thrown. */
function put(path: string, file: string, text: string): boolean {
  // Hosts without swap or without the scheduler have no file for them either, and nothing to limit.
  if (!existsSync(join(path, file))) return file === 'memory.swap.max' || file === 'io.bfq.weight'
  try {
    writeFileSync(join(path, file), text)
    return true
  } catch (error) {
    // A device without a queue of requests (a network filesystem, memory) has no rate to limit.
    if (file === 'io.max' && ['ENODEV', 'EOPNOTSUPP', 'ENXIO'].includes(errnoOf(error) ?? '')) return false
    throw error
  }
}

/**
 * Whether anybody acts on shares of the disks: the file takes any number, but it means something only where the cost
 * model is on or a disk has the scheduler for it.
 */
export function ioWeightWorks(hierarchy: string, devices: readonly string[]): boolean {
  const costs = join(hierarchy, 'io.cost.qos')
  const lines = existsSync(costs) ? readFileSync(costs, 'utf8').split('\n') : []
  return (
    devices.length > 0 &&
    devices.every((device) => {
      const scheduler = `/sys/dev/block/${device}/queue/scheduler`
      return (
        lines.some((line) => line.startsWith(`${device} `) && line.includes('enable=1')) ||
        (existsSync(scheduler) && readFileSync(scheduler, 'utf8').includes('[bfq]'))
      )
    })
  )
}

/**
 * The whole disk below a file, as the controllers name it: a limit on a partition is refused. Undefined where there is
 * none (overlay, memory, network, a pool of several disks).
 */
export function diskOf(path: string): string | undefined {
  const { dev } = statSync(path)
  const [major, minor] = [
    Math.floor(dev / 256) & 0xfff,
    (dev & 0xff) | ((Math.floor(dev / 0x100000) & 0xfff) << 8),
  ]
  const node = `/sys/dev/block/${major}:${minor}`
  if (!existsSync(node)) return undefined
  if (!existsSync(join(node, 'partition'))) return `${major}:${minor}`
  const disk = basename(dirname(readlinkSync(node)))
  return existsSync(`/sys/block/${disk}/dev`)
    ? readFileSync(`/sys/block/${disk}/dev`, 'utf8').trim()
    : undefined
}
