import type { Socket } from 'node:net'
import type { AgentResponse } from './agent-request.ts'
import { isHeader } from './answer-parser.ts'
import { httpDate } from './http-date.ts'
import type { Headers } from './request-nature.ts'

/** What the connection has to know of the answer in it. */
export interface AnswerOwner {
  /** Everything was handed to the socket. `last`: nothing may follow. */
  answered(last: boolean): void
}

export interface AnswerTo {
  readonly method: string
  /** The agent reads chunks. */
  readonly isNew: boolean
  readonly keepAlive: boolean
  readonly expect: string | undefined
}

/** A piece of the body up to this size goes together with what is written in front of it: a copy costs less than a call. */
const TOGETHER = 32_768

let reasons: Readonly<Record<number, string | undefined>> | undefined

/** Node's table of words; its module is loaded with the first answer, because many agents get none. */
function reasonOf(status: number): string {
  reasons ??= process.getBuiltinModule('node:http').STATUS_CODES
  return reasons[status] ?? 'Unknown'
}

/** Writes one answer in HTTP/1.1, each of its pieces in as few writes as it takes. */
export class Http1Answer implements AgentResponse {
  readonly #socket: Socket
  readonly #to: AnswerTo
  readonly #owner: AnswerOwner
  #head = ''
  #begun = false
  #ended = false
  #chunked = false
  #empty = false
  #last: boolean
  #gone = false
  #onGone: (() => void) | undefined

  constructor(socket: Socket, to: AnswerTo, owner: AnswerOwner) {
    this.#socket = socket
    this.#to = to
    this.#owner = owner
    this.#last = !to.keepAlive
  }

  get begun(): boolean {
    return this.#begun
  }

  get gone(): boolean {
    return this.#gone
  }

  onGone(listener: () => void): void {
    this.#onGone = listener
  }

  /** The connection says that it is closed. */
  leave(): void {
    if (this.#ended || this.#gone) return
    this.#gone = true
    this.#onGone?.()
  }

  proceed(): void {
    if (!this.#begun && this.#to.expect !== undefined)
      this.#socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
  }

  head(status: number, headers: Headers): void {
    const { method, isNew } = this.#to
    const bodyless = method === 'HEAD' || status === 204 || status === 304
    let text = `HTTP/1.1 ${status} ${reasonOf(status)}\r\n`
    let length: string | undefined
    let dated = false
    for (const [name, value] of headers) {
      // Never the value: it may be a secret.
      if (!isHeader(name, value)) throw new Error(`The header ${JSON.stringify(name)} cannot be written`)
      if (name === 'content-length') length = value
      else if (name === 'date') dated = true
      text += `${name}: ${value}\r\n`
    }
    if (!dated) text += `date: ${httpDate()}\r\n`
    this.#empty = bodyless
    this.#chunked = !bodyless && length === undefined && isNew
    // An old reader knows the end of such a body by the end of the connection.
    if (!bodyless && length === undefined && !isNew) this.#last = true
    if (this.#chunked) text += 'transfer-encoding: chunked\r\n'
    if (this.#last) text += 'connection: close\r\n'
    this.#head = `${text}\r\n`
  }

  flush(): void {
    if (this.#head === '') return
    this.#begun = true
    this.#socket.write(this.#head, 'latin1')
    this.#head = ''
  }

  write(bytes: Buffer): boolean {
    if (this.#empty || bytes.length === 0) return true
    this.#begun = true
    const before = this.#chunked ? `${this.#head}${bytes.length.toString(16)}\r\n` : this.#head
    this.#head = ''
    return this.#send(before, bytes, this.#chunked ? '\r\n' : '')
  }

  #send(before: string, bytes: Buffer, behind: string): boolean {
    const socket = this.#socket
    if (before === '' && behind === '') return socket.write(bytes)
    if (bytes.length <= TOGETHER) {
      const all = Buffer.allocUnsafe(before.length + bytes.length + behind.length)
      all.write(before, 0, 'latin1')
      bytes.copy(all, before.length)
      all.write(behind, before.length + bytes.length, 'latin1')
      return socket.write(all)
    }
    socket.cork()
    socket.write(before, 'latin1')
    const more = socket.write(bytes)
    if (behind !== '') socket.write(behind, 'latin1')
    socket.uncork()
    return more
  }

  onDrain(listener: () => void): void {
    this.#socket.once('drain', listener)
  }

  end(trailers: Headers = []): void {
    if (this.#ended) return
    this.#ended = true
    this.#begun = true
    let text = this.#head
    this.#head = ''
    if (this.#chunked) {
      text += '0\r\n'
      for (const [name, value] of trailers) if (isHeader(name, value)) text += `${name}: ${value}\r\n`
      text += '\r\n'
    }
    if (text !== '') this.#socket.write(text, 'latin1')
    this.#owner.answered(this.#last)
  }

  last(): void {
    this.#last = true
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
