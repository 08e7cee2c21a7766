import type { Duplex } from 'node:stream'
import { marshall, unmarshall } from 'dbus-native/lib/message.js'
import { PuzzledError } from './errors.ts'

/** The parts of a message that callers need; header fields as the specification names them. */
export interface BusMessage {
  type: number
  serial: number
  flags?: number
  replySerial?: number
  sender?: string
  destination?: string
  path?: string
  interface?: string
  member?: string
  errorName?: string
  signature?: string
  /** Of the body, before it was read. */
  bytes?: number
  /** Read from the wire when it is first asked for. Throws when it is not what the signature says. */
  readonly body?: readonly unknown[]
}

/** No bus lets more through by default (`max_message_size`), and who sends more is thrown off it. */
const MOST_SENT = 30 << 20
/** The specification's limit: a peer that announces more does not speak the protocol. */
const MOST_RECEIVED = 128 << 20
const HEADER_BYTES = 16
const LITTLE_ENDIAN = 0x6c
const OPTIONS = { returnBigInt: true, ayBuffer: true }

interface WireEvents {
  onMessage(message: BusMessage): void
  onEnd(cause: Error | null): void
}

/**
 * Messages over one byte stream: authentication, framing, nothing else. What a body holds is looked at last and alone:
 * bytes of some stranger that cannot be read spoil their own message, never the connection, and who may not call has
 * cost nothing but a header.
 */
export class BusWire {
  readonly #stream: Duplex
  readonly #events: WireEvents
  readonly #waiting: Buffer[] = []
  #state: 'greeting' | 'header' | 'rest' = 'greeting'
  #line = ''
  #header: Buffer = Buffer.alloc(0)
  #ended = false
  /** Counts arrivals, also of parts of a message. */
  heard = 0

  constructor(stream: Duplex, uid: number, events: WireEvents) {
    this.#stream = stream
    this.#events = events
    stream.on('readable', () => {
      this.heard++
      this.#read()
    })
    stream.on('error', (error) => this.#end(error))
    stream.on('end', () => this.#end(null))
    stream.on('close', () => this.#end(null))
    stream.write(`\0AUTH EXTERNAL ${Buffer.from(String(uid)).toString('hex')}\r\n`)
  }

  /** Throws `too-large`, or what is wrong with the message; nothing of it was sent then. */
  send(message: object): void {
    const bytes = marshall(message)
    if (bytes.length > MOST_SENT)
      throw new PuzzledError(
        'too-large',
        `${bytes.length} bytes are more than a message on the bus may have (${MOST_SENT})`,
      )
    if (this.#ended) return
    if (this.#state === 'greeting') this.#waiting.push(bytes)
    else this.#stream.write(bytes)
  }

  end(): void {
    this.#stream.end()
  }

  destroy(cause: Error): void {
    this.#stream.destroy(cause)
  }

  #end(cause: Error | null): void {
    if (this.#ended) return
    this.#ended = true
    this.#events.onEnd(cause)
  }

  #read(): void {
    try {
      while (this.#state === 'greeting' ? this.#greet() : this.#take());
    } catch (error) {
      // Where the next message begins is unknown now.
      this.#stream.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #greet(): boolean {
    const byte = this.#stream.read(1) as Buffer | null
    if (byte === null) return false
    this.#line += byte.toString('latin1')
    if (this.#line.length > 1024) throw new Error('What listens there is no message bus')
    if (!this.#line.endsWith('\n')) return true
    if (!this.#line.startsWith('OK ')) throw new Error(`The bus refuses to know us: ${this.#line.trim()}`)
    this.#stream.write('BEGIN\r\n')
    this.#state = 'header'
    for (const bytes of this.#waiting.splice(0)) this.#stream.write(bytes)
    return true
  }

  /** One step: a header, or everything behind it. False when more bytes have to arrive. */
  #take(): boolean {
    if (this.#state === 'header') {
      const header = this.#stream.read(HEADER_BYTES) as Buffer | null
      if (header === null) return false
      this.#header = header
      this.#state = 'rest'
      lengthsOf(header)
    }
    const { fields, body } = lengthsOf(this.#header)
    const rest = (fields + body === 0 ? Buffer.alloc(0) : this.#stream.read(fields + body)) as Buffer | null
    if (rest === null) return false
    this.#state = 'header'
    const message = messageOf(this.#header, rest.subarray(0, fields), rest.subarray(fields))
    if (message !== null) this.#events.onMessage(message)
    return true
  }
}

/** Of the header fields with their padding, and of the body. */
function lengthsOf(header: Buffer): { fields: number; body: number } {
  const at = (offset: number): number =>
    header[0] === LITTLE_ENDIAN ? header.readUInt32LE(offset) : header.readUInt32BE(offset)
  const body = at(4)
  const fields = Math.ceil(at(12) / 8) * 8
  if (header[3] !== 1 || fields + body > MOST_RECEIVED) throw new Error('What arrives is no message')
  return { fields, body }
}

/** Null for a message whose header fields cannot be read: nobody could be told. */
function messageOf(header: Buffer, fields: Buffer, body: Buffer): BusMessage | null {
  const alone = Buffer.from(header)
  alone.fill(0, 4, 8)
  let head: Record<string, unknown>
  try {
    head = unmarshall(Buffer.concat([alone, fields]), OPTIONS)
  } catch {
    return null
  }
  let read: readonly unknown[] | undefined
  const message = {
    ...(head as unknown as BusMessage),
    bytes: body.length,
    get body(): readonly unknown[] {
      read ??= body.length === 0 ? [] : bodyOf(header, fields, body)
      return read
    },
  }
  return message
}

function bodyOf(header: Buffer, fields: Buffer, body: Buffer): readonly unknown[] {
  const { body: values } = unmarshall(Buffer.concat([header, fields, body]), OPTIONS)
  return Array.isArray(values) ? values : []
}
