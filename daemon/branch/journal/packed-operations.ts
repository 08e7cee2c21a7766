// pure
import type { Buffer } from 'node:buffer'
import { Reader, Writer } from '../changeset-codec.ts'
import { type OldIdentity, type Operation, pathOf, textOf } from './format.ts'

const CHUNK = 256 * 1024
/** By their number; what stays in its place has attributes of any number, and stands as text. */
const KINDS = ['adjust', 'place', 'swap', 'remove'] as const

/**
 * The operations of a commit, outside the heap: there may be as many as there are changes, and each is looked at a few
 * times from the first to the last. Bytes instead of the text of the journal take a third of its room.
 */
export class PackedOperations implements Iterable<Operation> {
  readonly #chunks: Buffer[] = []
  readonly #writer = new Writer()

  push(operation: Operation): void {
    write(this.#writer, operation)
    if (this.#writer.length >= CHUNK) this.#chunks.push(this.#writer.take())
  }

  *[Symbol.iterator](): Generator<Operation> {
    if (this.#writer.length > 0) this.#chunks.push(this.#writer.take())
    for (const chunk of this.#chunks)
      for (const reader = new Reader(chunk); !reader.done; ) yield read(reader)
  }
}

function write(writer: Writer, operation: Operation): void {
  const { kind } = operation
  writer.u8(KINDS.indexOf(kind))
  if (kind === 'adjust') {
    writer.text(JSON.stringify(operation))
    return
  }
  writer.u32(operation.base)
  writer.bytes(pathOf(operation))
  writer.u64(operation.parent)
  writer.u32(operation.area)
  writer.text(operation.slot)
  if (kind !== 'remove') {
    writer.u64(operation.ino)
    writer.text(operation.time ?? '')
  }
  if (kind !== 'place') writeOld(writer, operation.old)
}

function writeOld(writer: Writer, old: OldIdentity): void {
  writer.u64(old.ino)
  writer.u8(old.dir ? 1 : 0)
  writer.u64(old.size)
  writer.text(old.mtime)
}

function read(reader: Reader): Operation {
  const kind = KINDS[reader.u8()]
  if (kind === undefined) throw new RangeError('An operation is of an unknown kind')
  if (kind === 'adjust') return JSON.parse(reader.text()) as Operation
  const target = { base: reader.u32(), path: textOf(reader.bytes()), parent: reader.u64() }
  const staged = { area: reader.u32(), slot: reader.text() }
  if (kind === 'remove') return { kind, ...target, ...staged, old: readOld(reader) }
  const made = { ino: reader.u64(), time: reader.text() || null }
  return kind === 'place'
    ? { kind, ...target, ...staged, ...made }
    : { kind, ...target, ...staged, ...made, old: readOld(reader) }
}

const readOld = (reader: Reader): OldIdentity => ({
  ino: reader.u64(),
  dir: reader.u8() === 1,
  size: reader.u64(),
  mtime: reader.text(),
})
