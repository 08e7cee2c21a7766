import { CODE, Http2Fault } from './fault.ts'

export const TYPE = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const

export const FLAG = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const

/** The largest payload of either end: nobody was told that there may be more. */
export const MOST_PAYLOAD = 16_384
const HEAD_BYTES = 9

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + payload.length)
  writeHead(bytes, type, flags, stream, payload.length)
  payload.copy(bytes, HEAD_BYTES)
  return bytes
}

/** The head alone, of a payload that follows. */
export function frameHead(type: number, flags: number, stream: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES)
  writeHead(bytes, type, flags, stream, length)
  return bytes
}

function writeHead(into: Buffer, type: number, flags: number, stream: number, length: number): void {
  into.writeUIntBE(length, 0, 3)
  into[3] = type
  into[4] = flags
  into.writeUInt32BE(stream, 5)
}

/** A frame whose payload is one number of four bytes. */
export function numberFrame(type: number, stream: number, value: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + 4)
  writeHead(bytes, type, 0, stream, 4)
  bytes.writeUInt32BE(value, HEAD_BYTES)
  return bytes
}

/** Cuts what arrives into frames. Of one that comes in pieces no more is held than it says to be long. */
export class FrameReader {
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headLength = 0
  #payload: Buffer | undefined
  #filled = 0

  /** Until there is no whole frame any more, or `take` has enough. What is left is to be pushed again. */
  push(chunk: Buffer, take: (frame: Frame) => boolean): Buffer {
    let at = 0
    let more = true
    while (more && at < chunk.length) {
      if (this.#payload === undefined) {
        const missing = HEAD_BYTES - this.#headLength
        this.#headLength += chunk.copy(this.#head, this.#headLength, at, at + missing)
        at += missing
        if (this.#headLength < HEAD_BYTES) break
        const length = this.#head.readUIntBE(0, 3)
        if (length > MOST_PAYLOAD) throw new Http2Fault(CODE.FRAME_SIZE_ERROR, 'A frame is too long')
        if (chunk.length - at >= length) {
          more = this.#taken(chunk.subarray(at, at + length), take)
          at += length
          continue
        }
        this.#payload = Buffer.allocUnsafeSlow(length)
        this.#filled = 0
      }
      const copied = chunk.copy(this.#payload, this.#filled, at)
      this.#filled += copied
      at += copied
      if (this.#filled === this.#payload.length) more = this.#taken(this.#payload, take)
    }
    return chunk.subarray(at)
  }

  #taken(payload: Buffer, take: (frame: Frame) => boolean): boolean {
    this.#headLength = 0
    this.#payload = undefined
    const head = this.#head
    const [type = 0, flags = 0] = [head[3], head[4]]
    return take({ type, flags, stream: head.readUInt32BE(5) & 0x7fffffff, payload })
  }
}

/** The payload of DATA and HEADERS without what fills it up. */
export function unpadded({ flags, payload }: Frame): Buffer {
  if ((flags & FLAG.PADDED) === 0) return payload
  const padding = payload[0]
  if (padding === undefined) throw new Http2Fault(CODE.FRAME_SIZE_ERROR, 'A padded frame is empty')
  if (padding >= payload.length)
    throw new Http2Fault(CODE.PROTOCOL_ERROR, 'A frame is longer filled up than it is')
  return payload.subarray(1, payload.length - padding)
}
