// pure
import type { Headers } from './request-nature.ts'

/** Another end that is not to be understood, or that broke off. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer'
  readonly code: 'BAD_ANSWER' | 'ANSWER_HEADERS' | 'ENDED_EARLY'

  constructor(code: BadAnswer['code'], message: string) {
    super(message)
    this.code = code
  }
}

export interface AnswerSink {
  head(status: number, headers: Headers): void
  data(bytes: Buffer): void
  end(trailers: Headers): void
  /** The protocol changes; what came behind the head belongs to the new one. */
  upgrade(headers: Headers, rest: Buffer): void
}

export interface AnswerExpected {
  /** Answers to it have no body, whatever their headers say. */
  readonly head: boolean
  readonly upgrade: boolean
  readonly headerBytes: number
}

const EMPTY = Buffer.alloc(0)
/** A size, and extensions that say nothing to us. */
const CHUNK_LINE = 1_024
/** `100`, `102`, `103`: each of them is read and dropped. */
const INTERIM = 32

type Step = 'head' | 'length' | 'chunk-line' | 'chunk' | 'chunk-end' | 'trailers' | 'rest' | 'done'

/**
 * Reads one HTTP/1.1 answer, in pieces of any size. Whatever two readers could understand differently is refused: the
 * answer is written anew for the agent, and the connection is used again only behind the last byte that was promised.
 */
export class AnswerParser {
  readonly #expected: AnswerExpected
  readonly #sink: AnswerSink
  #step: Step = 'head'
  #held: Buffer = EMPTY
  #left = 0
  #interim = 0
  #keepAlive = false

  constructor(expected: AnswerExpected, sink: AnswerSink) {
    this.#expected = expected
    this.#sink = sink
  }

  get done(): boolean {
    return this.#step === 'done'
  }

  /** Nothing is wrong with the connection behind this answer. */
  get reusable(): boolean {
    return this.done && this.#keepAlive && this.#held.length === 0
  }

  /** Throws `BadAnswer`; nothing may be pushed behind that. */
  push(chunk: Buffer): void {
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = EMPTY
    while (bytes.length > 0 && this.#step !== 'done') {
      const rest = this.#read(bytes)
      if (rest === undefined) {
        this.#held = bytes
        return
      }
      bytes = rest
    }
    if (bytes.length > 0) this.#held = bytes
  }

  /** The other end has said everything. */
  close(): void {
    if (this.#step === 'rest') this.#end([])
    else if (this.#step !== 'done')
      throw new BadAnswer('ENDED_EARLY', 'The other end broke off in the middle of its answer')
  }

  /** What follows the part that is read now; undefined where more bytes are needed for it. */
  #read(bytes: Buffer): Buffer | undefined {
    switch (this.#step) {
      case 'head':
        return this.#readHead(bytes)
      case 'length':
      case 'chunk':
        return this.#readSized(bytes)
      case 'chunk-line':
        return this.#readChunkLine(bytes)
      case 'chunk-end':
        if (bytes.length < 2) return undefined
        if (bytes[0] !== 13 || bytes[1] !== 10) throw bad('a chunk is longer than it says')
        this.#step = 'chunk-line'
        return bytes.subarray(2)
      case 'trailers':
        return this.#readTrailers(bytes)
      default:
        this.#sink.data(bytes)
        return EMPTY
    }
  }

  #readHead(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n\r\n')
    const { headerBytes } = this.#expected
    if (end > headerBytes || (end < 0 && bytes.length > headerBytes))
      throw new BadAnswer('ANSWER_HEADERS', `The headers of the answer are larger than ${headerBytes} bytes`)
    if (end < 0) {
      if (!'HTTP/1.'.startsWith(bytes.toString('latin1', 0, 7))) throw bad('it is no HTTP/1')
      // Said at once, instead of waiting for an end that would not come.
      if (hasBareLineFeed(bytes)) throw bad('a line ends without a return')
      return undefined
    }
    const [line = '', ...fields] = bytes.toString('latin1', 0, end).split('\r\n')
    const start = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/.exec(line)
    if (start === null) throw bad('its first line is malformed')
    const status = Number(start[2])
    const headers = fields.map(headerOf)
    const rest = bytes.subarray(end + 4)
    if (status === 101) return this.#switch(headers, rest)
    if (status < 200) {
      if (++this.#interim > INTERIM) throw bad('it says again and again that an answer will come')
      return rest
    }
    this.#frame(status, start[1] === '1', headers)
    return rest
  }

  #switch(headers: Headers, rest: Buffer): Buffer {
    if (!this.#expected.upgrade) throw bad('it changes the protocol, which nobody asked for')
    this.#step = 'done'
    this.#sink.upgrade(headers, rest)
    return EMPTY
  }

  /** How long the body is. Two statements about it are an attack on whoever reads behind us. */
  #frame(status: number, isNew: boolean, headers: Headers): void {
    const { lengths, encodings, length, encoding, closes } = saidAbout(headers)
    if (lengths > 1 || (length !== undefined && !/^\d{1,15}$/.test(length)))
      throw bad('its length is ambiguous')
    if (encodings > 0 && (length !== undefined || !isNew)) throw bad('it says how long it is in two ways')
    if (encodings > 1 || (encoding ?? 'chunked').toLowerCase() !== 'chunked')
      throw bad('its transfer encoding is not chunked')
    this.#keepAlive = isNew && !closes
    this.#left = Number(length ?? 0)
    const nothing = length !== undefined && this.#left === 0
    const empty = this.#expected.head || status === 204 || status === 304 || nothing
    this.#step = empty ? 'done' : encodings > 0 ? 'chunk-line' : length === undefined ? 'rest' : 'length'
    if (this.#step === 'rest') this.#keepAlive = false
    // What cannot come may come all the same, and would be the beginning of the next answer.
    const false204 = status === 204 && (encodings > 0 || this.#left > 0)
    if (false204) this.#keepAlive = false
    this.#sink.head(status, false204 ? headers.filter(([name]) => name !== 'content-length') : headers)
    if (empty) this.#sink.end([])
  }

  #readSized(bytes: Buffer): Buffer {
    const part = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left)
    this.#left -= part.length
    this.#sink.data(part)
    if (this.#left > 0) return EMPTY
    if (this.#step === 'length') this.#end([])
    else this.#step = 'chunk-end'
    return bytes.subarray(part.length)
  }

  #readChunkLine(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n')
    if (end > CHUNK_LINE || (end < 0 && bytes.length > CHUNK_LINE)) throw bad('a chunk has no size')
    if (end < 0) return undefined
    const line = /^([0-9A-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/.exec(
      bytes.toString('latin1', 0, end),
    )
    if (line === null) throw bad('a chunk has no size')
    this.#left = Number.parseInt(line[1] ?? '', 16)
    this.#step = this.#left === 0 ? 'trailers' : 'chunk'
    return bytes.subarray(end + 2)
  }

  #readTrailers(bytes: Buffer): Buffer | undefined {
    if (bytes.length < 2) return undefined
    if (bytes[0] === 13 && bytes[1] === 10) {
      this.#end([])
      return bytes.subarray(2)
    }
    const end = bytes.indexOf('\r\n\r\n')
    const { headerBytes } = this.#expected
    if (end > headerBytes || (end < 0 && bytes.length > headerBytes))
      throw new BadAnswer('ANSWER_HEADERS', `The trailers of the answer are larger than ${headerBytes} bytes`)
    if (end < 0) return undefined
    this.#end(bytes.toString('latin1', 0, end).split('\r\n').map(headerOf))
    return bytes.subarray(end + 4)
  }

  #end(trailers: Headers): void {
    this.#step = 'done'
    this.#sink.end(trailers)
  }
}

/** Where the end of the headers has not come. */
export function hasBareLineFeed(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1))
    if (bytes[at - 1] !== 13) return true
  return false
}

const bad = (what: string): BadAnswer =>
  new BadAnswer('BAD_ANSWER', `The answer is not strict HTTP/1.1: ${what}`)

interface Said {
  lengths: number
  encodings: number
  /** The first of each. */
  length: string | undefined
  encoding: string | undefined
  closes: boolean
}

function saidAbout(headers: Headers): Said {
  const said: Said = { lengths: 0, encodings: 0, length: undefined, encoding: undefined, closes: false }
  for (const [name, value] of headers) {
    if (name === 'content-length') {
      said.lengths++
      said.length ??= value
    } else if (name === 'transfer-encoding') {
      said.encodings++
      said.encoding ??= value
    } else if (name === 'connection') said.closes ||= /\bclose\b/i.test(value)
  }
  return said
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/

/** Is this a header that can stand in a message without becoming something else? */
export const isHeader = (name: string, value: string): boolean => NAME.test(name) && !NO_VALUE.test(value)

/** A folded line begins with a blank, so its name is none: refused like every other line that is no header. */
function headerOf(line: string): readonly [string, string] {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  const value = withoutBlanks(line, colon + 1)
  if (!isHeader(name, value)) throw bad('a header is malformed')
  return [name.toLowerCase(), value]
}

/** Blanks and tabs only: `trim` would take characters that make a value malformed. */
function withoutBlanks(line: string, from: number): string {
  let to = line.length
  const blank = (at: number): boolean => line.charCodeAt(at) === 32 || line.charCodeAt(at) === 9
  let at = from
  while (at < to && blank(at)) at++
  while (to > at && blank(to - 1)) to--
  return line.slice(at, to)
}
