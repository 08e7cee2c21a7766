// pure
import { Buffer } from 'node:buffer'
import type { BaseIdentity, Change, ChangeFinding, ChangeKind, NodeState } from '../contract/changeset.ts'
import {
  canonicalChange,
  KINDS,
  Reader,
  readBehindPath,
  type Writer,
  writeCanonical,
  writeIdentity,
} from './changeset-codec.ts'

/**
 * A change that stays in its encoded form: of a hundred thousand of them a process holds the bytes and one small
 * object each, not a dozen. What is asked for is decoded then, and the last one stays decoded. The fields are
 * accessors: `plainChange` makes a copy that can be spread, and JSON and the bus ask for one.
 */
export class PackedChange implements Change {
  readonly #block: Buffer
  readonly #at: number
  readonly #canonical: number
  readonly #end: number

  /** The record of `block` that begins at `at`. */
  constructor(block: Buffer, at: number) {
    this.#block = block
    this.#at = at
    this.#canonical = canonicalEnd(block, at)
    this.#end = this.#canonical + (block.readUInt8(this.#canonical) === 0 ? 1 : 1 + IDENTITY_BYTES)
    if (this.#end > block.length) throw new RangeError('A change ends in the middle')
  }

  get base(): number {
    return this.#block.readUInt32LE(this.#at)
  }
  get path(): Buffer {
    return this.#block.subarray(this.#at + 8, this.#pathEnd)
  }
  get kind(): ChangeKind {
    const kind = KINDS[this.#block.readUInt8(this.#pathEnd)]
    if (kind === undefined) throw new RangeError('A change is of an unknown kind')
    return kind
  }
  get old(): NodeState | null {
    return this.#decoded().old
  }
  get new(): NodeState | null {
    return this.#decoded().new
  }
  get hardlink(): number | undefined {
    return this.#decoded().hardlink
  }
  get identity(): BaseIdentity | undefined {
    return this.#decoded().identity
  }
  get findings(): readonly ChangeFinding[] {
    return this.#decoded().findings
  }

  get #pathEnd(): number {
    return this.#at + 8 + this.#block.readUInt32LE(this.#at + 4)
  }

  #decoded(): Change {
    if (last?.of === this) return last.change
    const reader = new Reader(this.#block, this.#pathEnd, this.#end)
    const change = readBehindPath(reader, this.base, this.path)
    last = { of: this, change }
    return change
  }

  toJSON(): Change {
    return plainChange(this)
  }

  /** What the digest covers; a view. */
  get canonical(): Buffer {
    return this.#block.subarray(this.#at, this.#canonical)
  }

  /** All of it; a view. */
  get record(): Buffer {
    return this.#block.subarray(this.#at, this.#end)
  }

  /** Where the record behind it begins. */
  get next(): number {
    return this.#end
  }

  /** The order of changes, without making a view of each path that is compared. */
  compareTo(base: number, path: Uint8Array): number {
    if (this.base !== base) return this.base - base
    return this.#block.compare(path, 0, path.length, this.#at + 8, this.#pathEnd)
  }
}

/** Whoever looks at a change looks at several of its fields: one that is decoded is enough. */
let last: { of: PackedChange; change: Change } | undefined

const IDENTITY_BYTES = 52
/** Mode, owner, group, size and time of a node. */
const STATE_BYTES = 28

function canonicalEnd(block: Buffer, start: number): number {
  const bytesEnd = (at: number): number => at + 4 + block.readUInt32LE(at)
  let at = bytesEnd(start + 4) + 1
  for (let side = 0; side < 2; side++) {
    if (block.readUInt8(at++) === 0) continue
    at = bytesEnd(bytesEnd(at + STATE_BYTES))
    const xattrs = block.readUInt32LE(at)
    at += 4
    for (let index = 0; index < xattrs; index++) at = bytesEnd(bytesEnd(at))
  }
  const findings = block.readUInt32LE(at + 4)
  at += 8
  for (let index = 0; index < findings; index++) at = bytesEnd(bytesEnd(at))
  return at
}

/** The changes of one block, which must not be written to any more. */
export function* packedChanges(bytes: Uint8Array): Generator<PackedChange> {
  const block = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < block.length; ) {
    const change = new PackedChange(block, at)
    at = change.next
    yield change
  }
}

/** The same change as an object of its own, for whoever wants another one that differs in a field. */
export function plainChange(change: Change): Change {
  const { base, path, kind, old, new: now, hardlink, identity, findings } = change
  const plain: Change = { base, path, kind, old, new: now, findings }
  if (hardlink !== undefined) plain.hardlink = hardlink
  if (identity !== undefined) plain.identity = identity
  return plain
}

/** What the digest covers. */
export const canonicalOf = (change: Change): Buffer =>
  change instanceof PackedChange ? change.canonical : canonicalChange(change)

/** The canonical form and what does not belong to the digest behind it. */
export function writeRecord(writer: Writer, change: Change): void {
  if (change instanceof PackedChange) {
    writer.raw(change.record)
    return
  }
  writeCanonical(writer, change)
  writeIdentity(writer, change.identity, change.old)
}
