// pure
import { Buffer } from 'node:buffer'
import type {
  BaseIdentity,
  Change,
  ChangeKind,
  NodeState,
  NodeType,
  XattrEntry,
} from '../contract/changeset.ts'
import { packTime, unpackTime } from '../lib/file-time.ts'

/**
 * One change as bytes. `canonicalChange` is what the digest covers: every field in a fixed order, integers little
 * endian, byte strings with their length before them. `encodeChange` adds the base's identity, which is compared at the
 * commit and is not part of what was approved: an unrelated write to the base must not invalidate an approval.
 */

export const KINDS: readonly ChangeKind[] = ['add', 'modify', 'delete', 'metadata', 'replace']
const TYPES: readonly NodeType[] = ['file', 'dir', 'symlink']

/** Appends to one growing buffer, so that encoding many changes allocates little. */
export class Writer {
  #buffer = Buffer.allocUnsafe(4096)
  #length = 0

  #room(size: number): number {
    const at = this.#length
    this.#length += size
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length))
      this.#buffer.copy(larger, 0, 0, at)
      this.#buffer = larger
    }
    return at
  }

  u8(value: number): void {
    // Making room may replace the buffer: it is named after that.
    const at = this.#room(1)
    this.#buffer.writeUInt8(value, at)
  }
  u32(value: number): void {
    const at = this.#room(4)
    this.#buffer.writeUInt32LE(value, at)
  }
  /** Non-negative and below 2^53. */
  u64(value: number): void {
    const at = this.#room(8)
    this.#buffer.writeUInt32LE(value % 0x1_0000_0000, at)
    this.#buffer.writeUInt32LE(Math.floor(value / 0x1_0000_0000), at + 4)
  }
  time(ns: bigint): void {
    const at = this.#room(8)
    this.#buffer.writeBigInt64LE(packTime(ns), at)
  }
  bytes(value: Uint8Array): void {
    this.u32(value.length)
    this.raw(value)
  }
  /** Bytes that were encoded before. */
  raw(value: Uint8Array): void {
    const at = this.#room(value.length)
    this.#buffer.set(value, at)
  }
  text(value: string): void {
    this.bytes(Buffer.from(value, 'utf8'))
  }
  hex(value: string | undefined): void {
    this.bytes(value === undefined ? EMPTY : Buffer.from(value, 'hex'))
  }
  get length(): number {
    return this.#length
  }

  /** What was written, valid until the next write. */
  view(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
  }

  /** What was written, copied out; the writer starts again. */
  take(): Buffer {
    const taken = Buffer.from(this.view())
    this.clear()
    return taken
  }
}

const EMPTY = Buffer.alloc(0)

export function writeCanonical(writer: Writer, change: Change): void {
  writer.u32(change.base)
  writer.bytes(change.path)
  writer.u8(KINDS.indexOf(change.kind))
  // Entries that come and go in a directory change its time: that is somebody else's business.
  writeState(writer, change.old, change.old?.type === 'dir')
  writeState(writer, change.new, false)
  writer.u32(change.hardlink ?? 0)
  writer.u32(change.findings.length)
  for (const finding of change.findings) {
    writer.text(finding.rule)
    writer.text(finding.message)
  }
}

export function writeState(writer: Writer, state: NodeState | null, timeless: boolean): void {
  writer.u8(state === null ? 0 : TYPES.indexOf(state.type) + 1)
  if (state === null) return
  writer.u32(state.mode)
  writer.u32(state.uid)
  writer.u32(state.gid)
  writer.u64(state.size)
  writer.time(timeless ? 0n : state.mtimeNs)
  writer.hex(state.sha256)
  writer.bytes(state.link ?? EMPTY)
  writer.u32(state.xattrs.length)
  for (const { name, value } of state.xattrs) {
    writer.text(name)
    writer.bytes(value)
  }
}

export function canonicalChange(change: Change): Buffer {
  const writer = new Writer()
  writeCanonical(writer, change)
  return writer.take()
}

/** The canonical form and, behind it, what does not belong to the digest. */
export function writeIdentity(
  writer: Writer,
  identity: BaseIdentity | undefined,
  old: NodeState | null,
): void {
  writer.u8(identity === undefined ? 0 : 1)
  if (identity === undefined) return
  writer.u64(identity.dev)
  writer.u64(identity.ino)
  writer.u64(identity.size)
  writer.time(identity.mtimeNs)
  writer.time(identity.ctimeNs)
  writer.u32(identity.nlink)
  writer.time(old?.mtimeNs ?? 0n)
}

/** Reads what `Writer` wrote; every read is checked against the end. */
export class Reader {
  readonly #buffer: Buffer
  readonly #end: number
  #at: number

  /** Of all bytes, or of those from `at` to `end`: a view of each part costs more than reading it. */
  constructor(bytes: Uint8Array, at = 0, end = bytes.byteLength) {
    this.#buffer =
      bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (end > this.#buffer.length) throw new RangeError('A change ends in the middle')
    this.#end = end
    this.#at = at
  }

  get done(): boolean {
    return this.#at >= this.#end
  }

  #take(size: number): number {
    const at = this.#at
    if (at + size > this.#end) throw new RangeError('A change ends in the middle')
    this.#at += size
    return at
  }

  u8(): number {
    return this.#buffer.readUInt8(this.#take(1))
  }
  u32(): number {
    return this.#buffer.readUInt32LE(this.#take(4))
  }
  u64(): number {
    const at = this.#take(8)
    return this.#buffer.readUInt32LE(at + 4) * 0x1_0000_0000 + this.#buffer.readUInt32LE(at)
  }
  time(): bigint {
    return unpackTime(this.#buffer.readBigInt64LE(this.#take(8)))
  }
  /** A view of the input, not a copy. */
  bytes(): Buffer {
    const length = this.u32()
    const at = this.#take(length)
    return this.#buffer.subarray(at, at + length)
  }
  /** A copy: a view would keep the whole message in memory for a few bytes of it. */
  kept(): Buffer {
    return Buffer.from(this.bytes())
  }
  text(): string {
    return this.#string('utf8')
  }
  hex(): string {
    return this.#string('hex')
  }

  #string(encoding: 'utf8' | 'hex'): string {
    const length = this.u32()
    const at = this.#take(length)
    return length === 0 ? '' : this.#buffer.toString(encoding, at, at + length)
  }
}

/** The reverse of `writeCanonical` followed by `writeIdentity`. */
export function readChange(reader: Reader): Change {
  const base = reader.u32()
  return readBehindPath(reader, base, reader.kept())
}

/** The rest of a change whose place was read. */
export function readBehindPath(reader: Reader, base: number, path: Buffer): Change {
  const kind = KINDS[reader.u8()]
  if (kind === undefined) throw new RangeError('A change is of an unknown kind')
  const old = readState(reader)
  const fresh = readState(reader)
  const hardlink = reader.u32()
  const findings = several(reader, () => ({ rule: reader.text(), message: reader.text() }))
  const change: Change = { base, path, kind, old, new: fresh, findings }
  if (hardlink > 0) change.hardlink = hardlink
  if (reader.u8() === 0) return change
  change.identity = {
    dev: reader.u64(),
    ino: reader.u64(),
    size: reader.u64(),
    mtimeNs: reader.time(),
    ctimeNs: reader.time(),
    nlink: reader.u32(),
  }
  const oldTime = reader.time()
  // One object for what is one time: there may be a hundred thousand of them.
  if (old !== null) old.mtimeNs = oldTime === change.identity.mtimeNs ? change.identity.mtimeNs : oldTime
  return change
}

const NONE: readonly never[] = []

/** Most changes have none of what there may be several of. */
function several<Item>(reader: Reader, read: () => Item): readonly Item[] {
  const length = reader.u32()
  return length === 0 ? NONE : Array.from({ length }, read)
}

export function readState(reader: Reader): NodeState | null {
  const code = reader.u8()
  if (code === 0) return null
  const type = TYPES[code - 1]
  if (type === undefined) throw new RangeError('A node is of an unknown type')
  const state: NodeState = {
    type,
    mode: reader.u32(),
    uid: reader.u32(),
    gid: reader.u32(),
    size: reader.u64(),
    mtimeNs: reader.time(),
    xattrs: NONE,
  }
  const sha256 = reader.hex()
  if (sha256 !== '') state.sha256 = sha256
  const link = reader.bytes()
  if (type === 'symlink') state.link = Buffer.from(link)
  state.xattrs = several<XattrEntry>(reader, () => ({ name: reader.text(), value: reader.kept() }))
  return state
}
