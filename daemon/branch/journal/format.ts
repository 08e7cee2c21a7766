// pure
import { hash } from 'node:crypto'
import { decodePath, encodePath, type PathText } from '../../contract/bytes.ts'
import type { DiskMeta } from '../../lib/disk.ts'

export const JOURNAL_VERSION = 1
/** Bytes kept free behind INTENT, so that DONE can be written on a full disk. */
export const RESERVE_BYTES = 4096

/** A directory on a target's filesystem that holds what is staged before, and what was replaced after. */
export interface Area {
  /** Absolute path of the private directory; the commit's own directory below it is named after the commit. */
  path: string
  dev: number
  /** What its filesystem is; absent in old journals and where the kernel does not say. */
  filesystemId?: string
  /** What is made in it belongs to this project, as everything does in the directories that it serves. */
  project?: number
}

export interface Root {
  path: string
  dev: number
  ino: number
  /** What its filesystem is; absent in old journals and where the kernel does not say. */
  filesystemId?: string
}

interface Target {
  /** Index into `roots`. */
  base: number
  path: PathText
  /** Inode of the directory that holds the entry. */
  parent: number
}

interface Staged {
  /** Index into `areas`. */
  area: number
  /** Name in the commit's directory of that area. */
  slot: string
}

export interface OldIdentity {
  ino: number
  dir: boolean
  size: number
  /** Decimal nanoseconds. */
  mtime: string
}

export interface MetaText {
  mode: number
  uid: number
  gid: number
  mtime: string
  xattrs: readonly { name: string; value: string }[]
}

/** Of a staged directory, decimal nanoseconds: some filesystems change it when the directory gets another parent. */
export type DirTime = string | null

/** One step of the apply phase, with all that undoing it needs. */
export type Operation =
  /** slot → target; nothing was there. `ino` is the staged inode: it says which side of the rename we are on. */
  | ({ kind: 'place'; ino: number; time: DirTime } & Target & Staged)
  /** slot ⇄ target; afterwards the slot holds what was there. */
  | ({ kind: 'swap'; ino: number; time: DirTime; old: OldIdentity } & Target & Staged)
  /** target → slot. */
  | ({ kind: 'remove'; old: OldIdentity } & Target & Staged)
  /** Metadata of a node that stays in its place. An empty path is the base itself. */
  | ({ kind: 'adjust'; ino: number; before: MetaText; after: MetaText } & Target)

export interface Begin {
  kind: 'begin'
  version: number
  commit: string
  branch: string
  digest: string
  /** True when the branch keeps changes that were not selected. */
  part: boolean
  /** The commit that this one takes back. */
  reverts: string | null
  requester: number
  at: string
  files: number
  roots: readonly Root[]
  areas: readonly Area[]
}

export type JournalRecord =
  | Begin
  | Operation
  | { kind: 'intent'; operations: number }
  | { kind: 'done'; at: string; warnings: readonly { path: string; message: string }[] }
  | { kind: 'undone'; at: string; reason: string }
  | { kind: 'stuck'; at: string; reason: string }
  | { kind: 'retried'; at: string }

export const RECORD_KINDS = [
  'begin',
  'place',
  'swap',
  'remove',
  'adjust',
  'intent',
  'done',
  'undone',
  'stuck',
  'retried',
] as const satisfies readonly JournalRecord['kind'][]

/** Each line carries the check of the line before it: nothing can be lost, changed or moved unseen. */
export const FIRST_CHECK = '0'.repeat(16)

export const checkOf = (before: string, text: string): string => hash('sha256', before + text).slice(0, 16)

export function encodeLine(before: string, record: JournalRecord): { line: string; check: string } {
  const text = JSON.stringify(record)
  const check = checkOf(before, text)
  return { line: `${check} ${text}\n`, check }
}

/** The record of one line without its newline, or undefined when the check or the form is wrong. */
export function decodeLine(
  before: string,
  line: string,
): { record: JournalRecord; check: string } | undefined {
  const check = line.slice(0, 16)
  const text = line.slice(17)
  if (line[16] !== ' ' || checkOf(before, text) !== check) return undefined
  const record = JSON.parse(text) as JournalRecord
  return (RECORD_KINDS as readonly string[]).includes(record.kind) ? { record, check } : undefined
}

export const toMetaText = (meta: DiskMeta): MetaText => ({
  mode: meta.mode,
  uid: meta.uid,
  gid: meta.gid,
  mtime: String(meta.mtimeNs),
  xattrs: meta.xattrs.map(({ name, value }) => ({ name, value: Buffer.from(value).toString('base64') })),
})

export const fromMetaText = (text: MetaText): DiskMeta => ({
  mode: text.mode,
  uid: text.uid,
  gid: text.gid,
  mtimeNs: BigInt(text.mtime),
  xattrs: text.xattrs.map(({ name, value }) => ({ name, value: Buffer.from(value, 'base64') })),
})

export const isOperation = (record: JournalRecord): record is Operation =>
  record.kind === 'place' || record.kind === 'swap' || record.kind === 'remove' || record.kind === 'adjust'

export interface SplitPath {
  parent: Buffer
  name: Buffer
}

const SLASH = 0x2f
const ROOT = Buffer.alloc(0)

/** `a/b/c` → `a/b` and `c`. */
export function splitPath(path: Uint8Array): SplitPath {
  const bytes = path instanceof Buffer ? path : Buffer.from(path.buffer, path.byteOffset, path.byteLength)
  const at = bytes.lastIndexOf(SLASH)
  return at < 0
    ? { parent: ROOT, name: bytes }
    : { parent: bytes.subarray(0, at), name: bytes.subarray(at + 1) }
}

export const pathOf = (operation: Operation): Buffer => decodePath(operation.path)
export const textOf = encodePath
