import type { Http2Limits } from './ceilings.ts'
import { CODE, Http2Fault } from './fault.ts'
import { FLAG, type Frame, TYPE, unpadded } from './frames.ts'
import { HeaderReader } from './header-reader.ts'
import type { Field } from './header-table.ts'

export interface HeaderBlock {
  readonly stream: number
  /** The agent says nothing behind it on this stream. */
  readonly last: boolean
  /** Undefined where they were more than the ceiling. */
  readonly fields: Field[] | undefined
}

interface Open {
  readonly stream: number
  readonly last: boolean
  readonly pieces: Buffer[]
  bytes: number
}

/** Header blocks come in one frame or in many; what it holds of an unfinished one is bounded. */
export class HeaderBlocks {
  readonly #limits: Http2Limits
  readonly #reader: HeaderReader
  #open: Open | undefined

  constructor(limits: Http2Limits) {
    this.#limits = limits
    this.#reader = new HeaderReader({ bytes: limits.headerBytes, count: limits.headerCount })
  }

  /** The stream whose block has not ended: no other frame may come. */
  get open(): number | undefined {
    return this.#open?.stream
  }

  /** The whole block, when this frame ends it. */
  take(frame: Frame): HeaderBlock | undefined {
    const piece = frame.type === TYPE.HEADERS ? fragmentOf(frame) : frame.payload
    const open = this.#open ?? this.#begin(frame)
    open.bytes += piece.length
    // Twice what it may be: whoever is only a little over is told so.
    if (open.bytes > 2 * this.#limits.headerBytes || open.pieces.length > this.#limits.continuations)
      throw new Http2Fault(CODE.ENHANCE_YOUR_CALM, 'A header block does not end')
    if ((frame.flags & FLAG.END_HEADERS) === 0) {
      // Its own, or it would keep everything that was read with it.
      open.pieces.push(Buffer.from(piece))
      this.#open = open
      return undefined
    }
    this.#open = undefined
    const block = open.pieces.length === 0 ? piece : Buffer.concat([...open.pieces, piece])
    return { stream: open.stream, last: open.last, fields: this.#reader.read(block) }
  }

  #begin({ type, flags, stream }: Frame): Open {
    if (type === TYPE.CONTINUATION) throw new Http2Fault(CODE.PROTOCOL_ERROR, 'Nothing is to be continued')
    return { stream, last: (flags & FLAG.END_STREAM) !== 0, pieces: [], bytes: 0 }
  }
}

/** Without the padding and the priority, which changes nothing here but must not name its own stream. */
function fragmentOf(frame: Frame): Buffer {
  const payload = unpadded(frame)
  if ((frame.flags & FLAG.PRIORITY) === 0) return payload
  if (payload.length < 5) throw new Http2Fault(CODE.FRAME_SIZE_ERROR, 'A priority is cut off')
  if ((payload.readUInt32BE(0) & 0x7fffffff) === frame.stream)
    throw new Http2Fault(CODE.PROTOCOL_ERROR, 'A stream that depends on itself')
  return payload.subarray(5)
}
