import { CODE, type Code, Http2Fault } from './fault.ts'
import { FLAG, type Frame, TYPE } from './frames.ts'

/** What a frame must be like, whatever was said before it. Throws what ends the connection. */
export function checkFrame(frame: Frame): void {
  const { type, flags, stream, payload } = frame
  const fail = (code: Code, what: string): never => {
    throw new Http2Fault(code, what)
  }
  if (type === TYPE.PUSH_PROMISE) fail(CODE.PROTOCOL_ERROR, 'Agents promise nothing')
  if (OF_STREAMS.has(type) && stream === 0) fail(CODE.PROTOCOL_ERROR, 'A frame of a stream names none')
  if (OF_CONNECTIONS.has(type) && stream !== 0)
    fail(CODE.PROTOCOL_ERROR, 'A frame of the connection names a stream')
  const length = LENGTHS[type]
  if (length !== undefined && payload.length !== length)
    fail(CODE.FRAME_SIZE_ERROR, 'A frame of a wrong length')
  if (type === TYPE.SETTINGS && (flags & FLAG.ACK) !== 0 && payload.length > 0)
    fail(CODE.FRAME_SIZE_ERROR, 'Settings in a confirmation')
  if (type === TYPE.PRIORITY && (payload.readUInt32BE(0) & 0x7fffffff) === stream)
    fail(CODE.PROTOCOL_ERROR, 'A stream that depends on itself')
}

const OF_STREAMS: ReadonlySet<number> = new Set([
  TYPE.DATA,
  TYPE.HEADERS,
  TYPE.PRIORITY,
  TYPE.RST_STREAM,
  TYPE.CONTINUATION,
])
const OF_CONNECTIONS: ReadonlySet<number> = new Set([TYPE.SETTINGS, TYPE.PING, TYPE.GOAWAY])
const LENGTHS: Readonly<Record<number, number | undefined>> = {
  [TYPE.PRIORITY]: 5,
  [TYPE.RST_STREAM]: 4,
  [TYPE.PING]: 8,
  [TYPE.WINDOW_UPDATE]: 4,
}
