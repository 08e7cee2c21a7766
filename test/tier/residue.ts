import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tablesOfNamespace } from './tables.ts'

/** What a process can leave behind, by kind. Each entry is a line that a person can look for. */
export interface Belongings {
  mounts: string[]
  namespaces: string[]
  cgroups: string[]
  tables: string[]
  descriptors: string[]
  processes: string[]
  files: string[]
}

/** Reads what this process and its room hold at this moment. */
export function takeStock(): Belongings {
  return {
    mounts: readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n').map(mountOf),
    namespaces: list('/run/netns'),
    cgroups: cgroups(),
    tables: process.geteuid?.() === 0 ? tablesOfNamespace() : [],
    descriptors: list('/proc/self/fd').flatMap(descriptorOf),
    processes: processes(),
    files: list(tmpdir()),
  }
}

/** What the second stock has and the first has not; kinds without a difference are absent. */
export function residue(before: Belongings, after: Belongings): Partial<Belongings> {
  const found: Partial<Belongings> = {}
  for (const kind of Object.keys(before) as (keyof Belongings)[]) {
    const known = new Set(before[kind])
    const added = after[kind].filter((entry) => !known.has(entry))
    if (added.length > 0) found[kind] = added
  }
  return found
}

/** Id, root, mount point and type: the id tells a second mount on the same place from the first. */
function mountOf(line: string): string {
  const [id, , , root, point, ...rest] = line.split(' ')
  return `${id} ${root} on ${point} type ${rest[rest.indexOf('-') + 1]}`
}

/**
 * Descriptors by number and target. The event loop opens its own (epoll, eventfd, io_uring) when it first needs them
 * and keeps them; a leak of ours would be a file, pipe, socket, pidfd or another anonymous inode.
 */
function descriptorOf(number: string): string[] {
  const target = link(`/proc/self/fd/${number}`)
  if (target === undefined || /^anon_inode:\[(eventpoll|eventfd|io_uring)\]$/.test(target)) return []
  return [`${number} → ${target}`]
}

/** Children of all threads, dead ones too, and whoever else lives in the room's cgroup. */
function processes(): string[] {
  const children = list('/proc/self/task').flatMap((task) => words(`/proc/self/task/${task}/children`))
  const room = roomOf()
  const inhabitants =
    room === undefined ? [] : ['.', ...walk(room)].flatMap((path) => words(join(room, path, 'cgroup.procs')))
  const all = new Set([...children, ...inhabitants])
  all.delete(String(process.pid))
  return [...all].flatMap((pid) => {
    const command = text(`/proc/${pid}/comm`)?.trim()
    return command === undefined || (command === GATE && !isOrphan(pid)) ? [] : [`${pid} ${command}`]
  })
}

/** A daemon keeps its gate for a minute after a verdict, so what one test began is there in the next. */
const GATE = 'puzzled-gate'
const isOrphan = (pid: string): boolean => /\) \S (\d+) /.exec(text(`/proc/${pid}/stat`) ?? '')?.[1] === '1'

/** Every cgroup of the room; in a hierarchy that systemd manages, those with our name only. */
function cgroups(): string[] {
  const room = roomOf()
  if (room !== undefined) return walk(room)
  const hierarchy = '/sys/fs/cgroup'
  return existsSync(`${hierarchy}/cgroup.procs`)
    ? walk(hierarchy).filter((path) => /puzzle.*\//.test(path))
    : []
}

/** The mount of this room's own cgroup: in its cgroup namespace, that is the one whose root is `/`. */
function roomOf(): string | undefined {
  const own = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(' - cgroup2 '))
    .at(-1)
    ?.split(' ')
  return own?.[3] === '/' && !existsSync('/run/systemd/system') && existsSync(`${own[4]}/cgroup.events`)
    ? own[4]
    : undefined
}

function walk(root: string, below = ''): string[] {
  return list(join(root, below)).flatMap((name) => {
    const path = join(below, name)
    return isFolder(join(root, path)) ? [path, ...walk(root, path)] : []
  })
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

const words = (file: string): string[] =>
  text(file)
    ?.split(/\s+/)
    .filter((word) => word !== '') ?? []

/** Entries of /proc and of cgroups vanish while they are read; that is an answer, not an error. */
function text(file: string): string | undefined {
  return vanishing(() => readFileSync(file, 'utf8'))
}

function link(file: string): string | undefined {
  return vanishing(() => readlinkSync(file))
}

function list(folder: string): string[] {
  return vanishing(() => readdirSync(folder)) ?? []
}

function vanishing<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (['ENOENT', 'ESRCH', 'ENODEV', 'ENOTDIR', 'EACCES'].includes(code)) return undefined
    throw error
  }
}
