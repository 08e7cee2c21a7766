// pure
import { Buffer } from 'node:buffer'

/** One line of `/proc/<pid>/mountinfo`; paths are bytes. */
export interface MountEntry {
  id: number
  parent: number
  /** The directory of the filesystem that is mounted here (not `/` for a bind). */
  root: Buffer
  target: Buffer
  options: readonly string[]
  propagation: readonly string[]
  type: string
  source: string
  superOptions: string
}

/**
 * Filesystems that show the kernel, its processes and its namespaces, and hold no files of people. `/dev` is none of
 * them: without its devices, which no agent can open, it is a directory of names.
 */
export const KERNEL_FILESYSTEMS: ReadonlySet<string> = new Set(
  `proc sysfs nsfs cgroup cgroup2 debugfs tracefs securityfs pstore bpf configfs mqueue hugetlbfs binfmt_misc fusectl
   efivarfs rpc_pipefs selinuxfs`.split(/\s+/),
)

/** Where such a filesystem is mounted, outermost first; what is mounted below one of them is part of it. */
export function kernelMounts(text: Buffer): MountEntry[] {
  const lines = text.toString('latin1').split('\n')
  // Only these are taken apart: this is asked at every start, and a host may have thousands of others.
  const of = (line: string): string => / - (\S+)/.exec(line)?.[1] ?? ''
  const found = parseMountinfo(
    Buffer.from(lines.filter((line) => KERNEL_FILESYSTEMS.has(of(line))).join('\n'), 'latin1'),
  )
  const covered = (target: Buffer, at: number): boolean =>
    found.some((other, index) => isBelow(target, other.target) || (index < at && other.target.equals(target)))
  return found.filter(({ target }, at) => !covered(target, at))
}

/** All mounts, in the kernel's order. A line that is not of the documented form is an error, never skipped. */
export function parseMountinfo(text: Buffer): MountEntry[] {
  const entries: MountEntry[] = []
  for (const line of text.toString('latin1').split('\n')) {
    if (line === '') continue
    entries.push(parseLine(line))
  }
  return entries
}

function parseLine(line: string): MountEntry {
  const fields = line.split(' ')
  const dash = fields.indexOf('-', 6)
  const [id, parent, , root, target, options] = fields
  if (dash < 0 || root === undefined || target === undefined || options === undefined)
    throw new Error(`mountinfo has a line of an unknown form: ${JSON.stringify(line)}`)
  return {
    id: Number(id),
    parent: Number(parent),
    root: fromOctal(root),
    target: fromOctal(target),
    options: options.split(','),
    propagation: fields.slice(6, dash),
    type: fields[dash + 1] ?? '',
    source: fromOctal(fields[dash + 2] ?? '').toString('utf8'),
    superOptions: fields[dash + 3] ?? '',
  }
}

/** The kernel writes space, tab, newline, `#` and backslash as three octal digits. */
const fromOctal = (text: string): Buffer =>
  Buffer.from(
    text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
    'latin1',
  )

/** Strictly below: `/a/b` is below `/a`, `/ab` and `/a` are not. */
export function isBelow(path: Uint8Array, directory: Uint8Array): boolean {
  const parent = Buffer.from(directory)
  const prefix = parent.length === 1 ? parent : Buffer.concat([parent, Buffer.from('/')])
  return path.length > prefix.length && Buffer.from(path.subarray(0, prefix.length)).equals(prefix)
}

/**
 * The mounts that are visible strictly below a directory, outermost first. A mount is hidden when another one lies on
 * top of it, or when one with the same parent was mounted over a directory above it.
 */
export function mountsBelow(entries: readonly MountEntry[], directory: Uint8Array): MountEntry[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  const children = new Map<number, MountEntry[]>()
  for (const entry of entries) children.set(entry.parent, [...(children.get(entry.parent) ?? []), entry])
  const covered = (entry: MountEntry): boolean =>
    (children.get(entry.id) ?? []).some((other) => other.target.equals(entry.target)) ||
    (children.get(entry.parent) ?? []).some((other) => isBelow(entry.target, other.target))
  const hidden = (entry: MountEntry, depth = 0): boolean => {
    const parent = byId.get(entry.parent)
    if (covered(entry)) return true
    if (parent === undefined || parent === entry || depth > entries.length) return false
    return parent.target.equals(entry.target) ? false : hidden(parent, depth + 1)
  }
  return entries
    .filter((entry) => isBelow(entry.target, directory) && !hidden(entry))
    .sort((a, b) => Buffer.compare(a.target, b.target))
}
