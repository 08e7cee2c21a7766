import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { marshall, unmarshall } from 'dbus-native/lib/message.js'

/** As it came over the wire. */
export type Raw = Record<string, unknown> & { serial: number; member?: string; type: number }

/** A bus with one connection, which says what the test wants it to say: also what no real bus would let through. */
export class FakeBus {
  readonly #folder = mkdtempSync(join(tmpdir(), 'puzzled-fake-bus-'))
  readonly #server = createServer((socket) => this.#serve(socket))
  readonly received: Raw[] = []
  #socket: Socket | null = null
  #buffer = Buffer.alloc(0)
  #serial = 1
  /** What is answered to a call; `Hello` is answered by itself. */
  onCall: (message: Raw) => void = () => undefined

  async start(): Promise<string> {
    const path = join(this.#folder, 'bus')
    await new Promise<void>((resolve) => this.#server.listen(path, resolve))
    return `unix:path=${path}`
  }

  send(message: Record<string, unknown>): void {
    this.write(marshall({ type: 1, serial: this.#serial++, ...message }))
  }

  /** The answer of the bus itself unless another sender is named. */
  answer(to: Raw, signature: string, body: unknown[], sender = 'org.freedesktop.DBus'): void {
    this.send({ type: 2, replySerial: to.serial, sender, signature, body })
  }

  write(bytes: Buffer): void {
    this.#socket?.write(bytes)
  }

  async close(): Promise<void> {
    this.#socket?.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
    rmSync(this.#folder, { recursive: true })
  }

  #serve(socket: Socket): void {
    this.#socket = socket
    let greeted = false
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      this.#buffer = Buffer.concat([this.#buffer, bytes])
      for (let at = this.#buffer.indexOf('\r\n'); !greeted && at >= 0; at = this.#buffer.indexOf('\r\n')) {
        const line = this.#buffer.toString('latin1', 0, at)
        this.#buffer = this.#buffer.subarray(at + 2)
        greeted = line === 'BEGIN'
        if (!greeted) socket.write('OK 0123456789abcdef0123456789abcdef\r\n')
      }
      while (greeted && this.#take());
    })
  }

  #take(): boolean {
    if (this.#buffer.length < 16) return false
    const length = 16 + Math.ceil(this.#buffer.readUInt32LE(12) / 8) * 8 + this.#buffer.readUInt32LE(4)
    if (this.#buffer.length < length) return false
    const message = unmarshall(this.#buffer.subarray(0, length), {}) as Raw
    this.#buffer = this.#buffer.subarray(length)
    if (message.member === 'Hello') this.answer(message, 's', [':1.1'])
    else {
      this.received.push(message)
      this.onCall(message)
    }
    return true
  }
}
