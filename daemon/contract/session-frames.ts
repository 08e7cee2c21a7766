// pure
import { Buffer } from 'node:buffer'

/**
 * What travels over the unix socket of a session, in both directions: frames of one letter, the length in four bytes
 * (big endian) and so many bytes. Output and errors stay apart, and the end of either direction can be told.
 */
export const SESSION_FRAMES = {
  /** To the agent: bytes for its standard input. */
  input: 'i',
  /** To the agent: its standard input ends. A terminal takes no notice. */
  endOfInput: 'e',
  /** To the agent: columns and rows, two bytes each. */
  size: 'w',
  /** To a command of `Exec`: the name of a signal. */
  signal: 's',
  /** The agent shall wait for this reader when it is slow. Others are dropped when they fall too far behind. */
  pace: 'h',
  /** From the agent: standard output, or all that its terminal shows. */
  output: 'o',
  /** From the agent: standard error. */
  errors: 'r',
  /** The end, behind everything that was written: `AgentExit` as JSON. Nothing follows. */
  exit: 'x',
  /** Why the daemon lets go of this reader, in words. Nothing follows. */
  notice: 'm',
} as const

export type FrameKind = (typeof SESSION_FRAMES)[keyof typeof SESSION_FRAMES]

export interface Frame {
  kind: FrameKind
  bytes: Buffer
}

const HEAD_BYTES = 5
const KINDS: ReadonlySet<string> = new Set(Object.values(SESSION_FRAMES))

/** Nobody sends more at once; a length beyond it is no frame of ours. */
export const MOST_FRAME_BYTES = 1 << 20

const NOTHING = Buffer.alloc(0)

export function frame(kind: FrameKind, bytes: Uint8Array = NOTHING): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.write(kind, 'latin1')
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

export function sizeFrame(columns: number, rows: number): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt16BE(columns)
  size.writeUInt16BE(rows, 2)
  return frame(SESSION_FRAMES.size, size)
}

/** Frames out of a stream of bytes, however they were cut. Throws when it meets what is no frame. */
export class FrameReader {
  #rest: Buffer = NOTHING

  push(bytes: Uint8Array): Frame[] {
    this.#rest = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes])
    const frames: Frame[] = []
    let at = 0
    while (this.#rest.length - at >= HEAD_BYTES) {
      const kind = this.#rest.toString('latin1', at, at + 1)
      const length = this.#rest.readUInt32BE(at + 1)
      if (!KINDS.has(kind) || length > MOST_FRAME_BYTES) throw new RangeError('That is no frame of a session')
      if (this.#rest.length - at - HEAD_BYTES < length) break
      const start = at + HEAD_BYTES
      frames.push({ kind: kind as FrameKind, bytes: this.#rest.subarray(start, start + length) })
      at = start + length
    }
    this.#rest = this.#rest.subarray(at)
    return frames
  }
}
