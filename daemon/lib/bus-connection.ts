import { openBusAddress } from './bus-address.ts'
import { type BusMessage, BusWire } from './bus-wire.ts'
import { PuzzledError } from './errors.ts'

export type { BusMessage } from './bus-wire.ts'

export interface BusCall {
  destination: string
  path: string
  interface: string
  member: string
  signature?: string
  body?: readonly unknown[]
}

export interface BusSignal {
  path: string
  face: string
  member: string
  signature: string
  body: readonly unknown[]
  to?: string
}

const METHOD_CALL = 1
const METHOD_RETURN = 2
const ERROR = 3
const SIGNAL = 4

interface Pending {
  resolve: (body: unknown[]) => void
  reject: (error: Error) => void
  call: BusCall
}

/** An error reply of a peer. `busName` is the name on the wire. */
export class BusError extends Error {
  override readonly name = 'BusError'
  readonly busName: string

  constructor(busName: string, message: string) {
    super(message)
    this.busName = busName
  }
}

/** Flags of a message. */
const NO_REPLY = 1
const INTERACTIVE = 4

const BUS = 'org.freedesktop.DBus'

const CONNECT_MILLIS = 10_000
/** For what is still on its way when a connection is closed. A bus that is wedged never closes its side. */
const CLOSE_MILLIS = 1000
/** Every object of every peer answers a ping. */
export const PEER_PATH = '/'

export const SYSTEM_BUS = 'unix:path=/run/dbus/system_bus_socket'

/**
 * One connection to a bus. Calls end with the connection: nothing waits for a reply that cannot come. Incoming calls
 * go to one handler, which sees the sender; the library's own dispatcher is not used.
 */
export class BusConnection {
  readonly #wire: BusWire
  readonly #pending = new Map<number, Pending>()
  readonly #closeListeners = new Set<(cause: Error | null) => void>()
  readonly #signalListeners = new Set<(message: BusMessage) => void>()
  #serial = 0
  #closed: Error | null = null
  #handler: ((message: BusMessage) => void) | null = null
  /** The unique name that the bus gave us. */
  uniqueName = ''

  private constructor(address: string) {
    this.#wire = new BusWire(openBusAddress(address), process.getuid?.() ?? 0, {
      onMessage: (message) => this.#receive(message),
      onEnd: (cause) => this.#lose(cause),
    })
  }

  static async connect(address = process.env.DBUS_SYSTEM_BUS_ADDRESS ?? SYSTEM_BUS): Promise<BusConnection> {
    const connection = new BusConnection(address)
    // Somebody may listen there and never answer.
    const timer = setTimeout(() => connection.#abandon(), CONNECT_MILLIS)
    try {
      const [name] = await connection.callBus('Hello')
      connection.uniqueName = String(name)
      return connection
    } finally {
      clearTimeout(timer)
    }
  }

  /** Grows whenever anything arrives, also a part of a message. */
  get heard(): number {
    return this.#wire.heard
  }

  call(call: BusCall): Promise<unknown[]> {
    if (this.#closed !== null) return Promise.reject(goneError(call, this.#closed))
    const serial = this.#nextSerial()
    return new Promise((resolve, reject) => {
      // First the sending: a call that cannot be put into bytes waits for nothing.
      this.#wire.send({
        type: METHOD_CALL,
        serial,
        flags: INTERACTIVE,
        ...call,
        ...(call.body === undefined ? {} : { body: [...call.body] }),
      })
      this.#pending.set(serial, { resolve, reject, call })
    })
  }

  /** A method of the bus itself. */
  callBus(member: string, signature?: string, body?: readonly unknown[]): Promise<unknown[]> {
    return this.call({
      destination: BUS,
      path: '/org/freedesktop/DBus',
      interface: BUS,
      member,
      ...(signature === undefined ? {} : { signature, body: body ?? [] }),
    })
  }

  onCall(handler: (message: BusMessage) => void): void {
    this.#handler = handler
  }

  onSignal(listener: (message: BusMessage) => void): () => void {
    this.#signalListeners.add(listener)
    return () => this.#signalListeners.delete(listener)
  }

  onClose(listener: (cause: Error | null) => void): void {
    this.#closeListeners.add(listener)
  }

  /** Throws when the answer cannot be sent: it does not fit its signature, or is `too-large`. */
  reply(to: BusMessage, signature: string, body: readonly unknown[]): void {
    if (isOneWay(to)) return
    this.#wire.send({
      type: METHOD_RETURN,
      serial: this.#nextSerial(),
      replySerial: to.serial,
      ...(to.sender === undefined ? {} : { destination: to.sender }),
      ...(signature === '' ? {} : { signature, body: [...body] }),
    })
  }

  replyError(to: BusMessage, errorName: string, text: string): void {
    if (isOneWay(to)) return
    this.#wire.send({
      type: ERROR,
      serial: this.#nextSerial(),
      replySerial: to.serial,
      ...(to.sender === undefined ? {} : { destination: to.sender }),
      errorName,
      signature: 's',
      body: [text],
    })
  }

  /** To one connection when `to` is given, to everybody who listens otherwise. */
  signal({ path, face, member, signature, body, to }: BusSignal): void {
    if (this.#closed !== null) return
    this.#wire.send({
      type: SIGNAL,
      serial: this.#nextSerial(),
      path,
      interface: face,
      member,
      ...(to === undefined ? {} : { destination: to }),
      signature,
      body: [...body],
    })
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closed !== null) {
        resolve()
        return
      }
      const timer = setTimeout(() => this.#wire.destroy(new Error('it was closed here')), CLOSE_MILLIS)
      this.onClose(() => {
        clearTimeout(timer)
        resolve()
      })
      this.#wire.end()
    })
  }

  #abandon(): void {
    this.#wire.destroy(new Error(`no answer within ${CONNECT_MILLIS / 1000} s`))
  }

  #nextSerial(): number {
    this.#serial = this.#serial >= 0xffff_fffe ? 1 : this.#serial + 1
    return this.#serial
  }

  #receive(message: BusMessage): void {
    if (message.type === METHOD_CALL) this.#handler?.(message)
    else if (message.type === SIGNAL) for (const listener of this.#signalListeners) listener(message)
    else this.#settle(message)
  }

  #settle(message: BusMessage): void {
    const pending = this.#pending.get(message.replySerial ?? 0)
    // Whoever we have called could answer for somebody else: what the bus or one connection was asked, it answers itself.
    if (pending === undefined || !mayAnswer(pending.call.destination, message)) return
    this.#pending.delete(message.replySerial ?? 0)
    try {
      const body = message.body ?? []
      if (message.type === METHOD_RETURN) pending.resolve([...body])
      else
        pending.reject(
          new BusError(message.errorName ?? 'org.freedesktop.DBus.Error.Failed', String(body[0] ?? '')),
        )
    } catch (cause) {
      pending.reject(
        new PuzzledError('internal', `The answer to ${pending.call.member} cannot be read`, { cause }),
      )
    }
  }

  #lose(cause: Error | null): void {
    if (this.#closed !== null) return
    this.#closed = cause ?? new Error('the connection was closed')
    for (const { reject, call } of this.#pending.values()) reject(goneError(call, this.#closed))
    this.#pending.clear()
    for (const listener of this.#closeListeners) listener(cause)
  }
}

const isOneWay = ({ flags = 0 }: BusMessage): boolean => (flags & NO_REPLY) !== 0

/** A well-known name stands for a connection that we do not know; the bus lets only that one answer. */
const mayAnswer = (destination: string, { sender, type }: BusMessage): boolean =>
  (destination !== BUS && !destination.startsWith(':')) ||
  sender === destination ||
  // For who can answer no more, the bus does.
  (type === ERROR && sender === BUS)

const goneError = (call: BusCall, cause: Error): PuzzledError =>
  new PuzzledError('bus-gone', `The message bus went away during ${call.interface}.${call.member}`, {
    cause,
    hint: 'Is dbus-daemon running? systemctl status dbus',
  })
