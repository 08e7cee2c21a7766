// pure
import { posix } from 'node:path'
import type { Requester } from '../contract/branch.ts'
import { encodePath } from '../contract/bytes.ts'
import type { Change, NodeState } from '../contract/changeset.ts'

/** Names of `index.flags`: the changes of which something is true, so that a rule need not look at all of them. */
export const FLAGS = [
  'becomesExecutable',
  'content',
  'deceptive',
  'findings',
  'linkOutside',
  'native',
  'notText',
  'owner',
  'security',
  'setuid',
  'system',
  'unread',
  'unreadExecutable',
  'worldWritable',
] as const
export type Flag = (typeof FLAGS)[number]

const bits = (state: NodeState | null): number =>
  state === null || state.type === 'symlink' ? 0 : state.mode

export const isExecutable = (state: NodeState | null): boolean =>
  state?.type === 'file' && (state.mode & 0o111) !== 0

/** Flags that follow from the states before and after; only what becomes true counts. */
export function* stateFlags(change: Change, requester: Requester): Generator<Flag> {
  const { old, new: now } = change
  if (now === null) return
  if (now.type === 'file' && (now.mode & 0o6000 & ~bits(old)) !== 0) yield 'setuid'
  if (isExecutable(now) && !isExecutable(old)) yield 'becomesExecutable'
  const sticky = now.type === 'dir' && (now.mode & 0o1000) !== 0
  if ((bits(now) & 0o002 & ~bits(old)) !== 0 && !sticky) yield 'worldWritable'
  if (securityChanged(old, now)) yield 'security'
  if (ownerChanged(old, now, requester)) yield 'owner'
}

/** Labels of SELinux and IMA are set by the system, not by the agent. */
const SYSTEM_LABELS = new Set(['security.selinux', 'security.ima', 'security.evm'])

function securityChanged(old: NodeState | null, now: NodeState): boolean {
  return now.xattrs.some(({ name, value }) => {
    if (!/^(security|trusted)\./.test(name) || SYSTEM_LABELS.has(name)) return false
    const before = old?.xattrs.find((each) => each.name === name)
    return before === undefined || Buffer.compare(before.value, value) !== 0
  })
}

function ownerChanged(old: NodeState | null, now: NodeState, requester: Requester): boolean {
  // Root's agents run as the owner of the base, and root could give any file to anybody: nothing is gained by it.
  if (requester.uid === 0) return false
  if (old !== null) return old.uid !== now.uid || old.gid !== now.gid
  return now.uid !== requester.uid || (now.gid !== requester.gid && !requester.groups.includes(now.gid))
}

export interface LinkTarget {
  text: string
  /** Where it leads by its words alone, absolute. */
  resolved: string
  outside: boolean
}

/**
 * Where a symbolic link leads, by its words. `..` behind a name is taken as leaving the base: whether it does depends
 * on what the name is at the time somebody follows it.
 */
export function linkTarget(link: Uint8Array, target: string, bases: readonly string[]): LinkTarget {
  const text = encodePath(link).path
  const resolved = posix.resolve(posix.dirname(target), text)
  const winding = /(^|\/)(?!\.\.?(\/|$))[^/]+\/(.*\/)?\.\.(\/|$)/.test(text)
  const inside = bases.some(
    (base) => resolved === base || resolved.startsWith(base === '/' ? '/' : `${base}/`),
  )
  return { text, resolved, outside: winding || !inside }
}

const SYSTEM_ROOTS =
  /^\/(?:bin|sbin|lib|lib32|lib64|libx32|boot|dev|proc|sys|run|etc|usr(?!\/(?:local\/)?src\/)|var\/(?:lib|spool|log|cache))(?:\/|$)/

export const isSystemPath = (folded: string): boolean => SYSTEM_ROOTS.test(folded)

/** As JSON text: this is done for every change, and assembling text is several times faster than objects. */
export function stateText(state: NodeState | null, link: LinkTarget | undefined): string {
  if (state === null) return 'null'
  const { type, mode, uid, gid, size } = state
  const words =
    link === undefined
      ? ''
      : `,"link":${JSON.stringify(link.text)},"resolved":${JSON.stringify(link.resolved)}`
  return `{"type":"${type}","mode":${mode},"uid":${uid},"gid":${gid},"size":${size}${words}}`
}
