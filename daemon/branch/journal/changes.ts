import { createHash } from 'node:crypto'
import type { Change, NodeState } from '../../contract/changeset.ts'
import type { Dir, Disk } from '../../lib/disk.ts'
import { errnoOf, PuzzledError } from '../../lib/errors.ts'
import { Reader, readChange, Writer } from '../changeset-codec.ts'
import { PackedChange, plainChange, writeRecord } from '../packed-change.ts'
import { changesName } from '../staging-area.ts'

const CHUNK = 256 * 1024
const SUM_BYTES = 32

/** Changes as bytes, in pieces of a bounded size, exactly as a diff sends them; its own pieces are not copied. */
export function* packChanges(changes: Iterable<Change>): Generator<Buffer> {
  const writer = new Writer()
  let run = new Run()
  for (const change of changes) {
    if (change instanceof PackedChange && run.take(change.record)) continue
    yield* flush(writer, run)
    run = new Run()
    if (change instanceof PackedChange) run.take(change.record)
    else writeRecord(writer, change)
    if (writer.length >= CHUNK) yield writer.take()
  }
  yield* flush(writer, run)
  if (writer.length > 0) yield writer.take()
}

/** Records that stand behind one another in one block. */
class Run {
  #buffer: ArrayBufferLike | undefined
  #start = 0
  #end = 0

  take({ buffer, byteOffset, length }: Buffer): boolean {
    if (this.#buffer !== undefined && (this.#buffer !== buffer || this.#end !== byteOffset)) return false
    if (this.#buffer === undefined) this.#start = byteOffset
    this.#buffer = buffer
    this.#end = byteOffset + length
    return true
  }

  get bytes(): Buffer {
    return Buffer.from(this.#buffer ?? new ArrayBuffer(0), this.#start, this.#end - this.#start)
  }
}

/** A part of a block is copied: on its way to another thread a view brings all of its block along. */
function* flush(writer: Writer, { bytes }: Run): Generator<Buffer> {
  if (bytes.length > 0 && bytes.length === bytes.buffer.byteLength) {
    if (writer.length > 0) yield writer.take()
    yield bytes
  } else writer.raw(bytes)
}

function* pack(changes: Iterable<Change>, times: boolean): Generator<Buffer> {
  const writer = new Writer()
  for (const change of changes) {
    writeRecord(writer, change)
    // Not in the canonical form of a directory, but a revert brings it back.
    if (times) writer.time(change.old?.mtimeNs ?? 0n)
    if (writer.length >= CHUNK) yield writer.take()
  }
  if (writer.length > 0) yield writer.take()
}

export const unpackChanges = (bytes: Uint8Array): Change[] => unpack(bytes, false)

function unpack(bytes: Uint8Array, times: boolean): Change[] {
  const changes: Change[] = []
  for (const reader = new Reader(bytes); !reader.done; ) {
    const change = readChange(reader)
    changes.push(change)
    if (!times) continue
    const mtimeNs = reader.time()
    if (change.old !== null) change.old.mtimeNs = mtimeNs
  }
  return changes
}

/** What landed, path by path, with its SHA-256 behind it. Durable before INTENT. */
export function writeChanges(
  disk: Disk,
  journal: Dir,
  commit: string,
  changes: readonly Change[],
  stripped: ReadonlyMap<Change, NodeState>,
): void {
  const name = changesName(commit)
  const sum = createHash('sha256')
  let end = 0
  const landed = function* (): Generator<Change> {
    for (const change of changes) {
      const state = stripped.get(change)
      yield state === undefined ? change : { ...plainChange(change), new: state }
    }
  }
  for (const bytes of pack(landed(), true)) {
    sum.update(bytes)
    disk.writeAt(journal, name, end, bytes)
    end += bytes.length
  }
  disk.writeAt(journal, name, end, sum.digest())
  disk.fsync(journal, name)
}

/** Where the list only helps to decide: one that is damaged, or half removed by retention, proves nothing. */
export function changesIfKnown(disk: Disk, journal: Dir, commit: string): Change[] {
  try {
    return readChanges(disk, journal, commit)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    if (error instanceof PuzzledError && error.code === 'record-damaged') return []
    throw error
  }
}

export function readChanges(disk: Disk, journal: Dir, commit: string): Change[] {
  const bytes = disk.readFile(journal, changesName(commit))
  const end = bytes.length - SUM_BYTES
  const content = bytes.subarray(0, Math.max(0, end))
  if (end < 0 || !createHash('sha256').update(content).digest().equals(bytes.subarray(end)))
    throw new PuzzledError('record-damaged', `The list of what commit ${commit} changed is damaged`, {
      hint: 'It was kept as it is and nothing was done.',
    })
  return unpack(content, true)
}
