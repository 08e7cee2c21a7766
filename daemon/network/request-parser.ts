// pure
import { hasBareLineFeed, isHeader } from './answer-parser.ts'
import { NetworkDenied } from './denial.ts'
import { badFraming } from './headers.ts'
import type { Headers } from './request-nature.ts'

/** The first line and the headers of a request, and what they say about its connection. */
export interface RequestHead {
  readonly method: string
  readonly target: string
  /** HTTP/1.1, which knows chunks and connections that stay open. */
  readonly isNew: boolean
  /** Names in lower case. */
  readonly headers: Headers
  readonly hasBody: boolean
  /** The agent means to send another request behind it. */
  readonly keepAlive: boolean
  /** A protocol to change to, if the other side wants to. */
  readonly upgrade: string | undefined
  readonly expect: string | undefined
}

export interface RequestSink {
  head(head: RequestHead): void
  data(bytes: Buffer): void
  /** The request is whole. Nothing is read behind it before `next`. */
  end(): void
}

export interface RequestLimits {
  readonly headerBytes: number
  readonly headerCount: number
}

const EMPTY = Buffer.alloc(0)
/** A size needs no more. */
const CHUNK_LINE = 64
/** Empty lines in front of a request, which careless clients leave behind the last body. */
const EMPTY_LINES = 4

type Step = 'head' | 'length' | 'chunk-line' | 'chunk' | 'chunk-end' | 'trailers' | 'ended'

/**
 * Reads the HTTP/1.1 requests of one connection, in pieces of any size. Whatever two readers could understand
 * differently is refused (S37), and behind a refusal nothing of the connection is read.
 */
export class RequestParser {
  readonly #limits: RequestLimits
  readonly #sink: RequestSink
  #step: Step = 'head'
  #held: Buffer = EMPTY
  #left = 0
  #emptyLines = 0

  constructor(limits: RequestLimits, sink: RequestSink) {
    this.#limits = limits
    this.#sink = sink
  }

  /** Between two requests, with nothing of the next one. */
  get idle(): boolean {
    return this.#step === 'head' && this.#held.length === 0
  }

  /** Everything of the request was read. */
  get ended(): boolean {
    return this.#step === 'ended'
  }

  /** Bytes that wait behind a request. */
  get waiting(): number {
    return this.#held.length
  }

  /** Throws `NetworkDenied`; nothing may be pushed behind that. */
  push(chunk: Buffer): void {
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = EMPTY
    while (bytes.length > 0 && this.#step !== 'ended') {
      const rest = this.#read(bytes)
      if (rest === undefined) break
      bytes = rest
    }
    this.#held = bytes
  }

  /** Goes on with what came behind the last request. */
  next(): void {
    this.#step = 'head'
    this.#emptyLines = 0
    if (this.#held.length > 0) this.push(EMPTY)
  }

  /** What was not read, for whoever takes the connection over. */
  take(): Buffer {
    const held = this.#held
    this.#held = EMPTY
    return held
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
        if (bytes[0] !== 13 || (bytes[1] ?? 10) !== 10) throw bad('a chunk is longer than it says')
        if (bytes.length < 2) return undefined
        this.#step = 'chunk-line'
        return bytes.subarray(2)
      default:
        return this.#readTrailers(bytes)
    }
  }

  #readHead(bytes: Buffer): Buffer | undefined {
    if (bytes[0] === 13) return this.#skipEmptyLine(bytes)
    const end = this.#endOfFields(bytes)
    if (end < 0) {
      // Said at once, instead of waiting for an end that would not come.
      if (!isUpperCase(bytes[0])) throw bad('its first line is malformed')
      if (hasBareLineFeed(bytes)) throw bad('a line ends without a return')
      return undefined
    }
    const text = bytes.toString('latin1', 0, end)
    const lineEnd = text.indexOf('\r\n')
    const start = LINE.exec(lineEnd < 0 ? text : text.slice(0, lineEnd))
    if (start === null) throw bad('its first line is malformed')
    const headers = lineEnd < 0 ? [] : fieldsOf(text, lineEnd + 2, this.#limits.headerCount)
    this.#begin(headOf(start, headers))
    return bytes.subarray(end + 4)
  }

  #skipEmptyLine(bytes: Buffer): Buffer | undefined {
    if (bytes.length < 2) return undefined
    if (bytes[1] !== 10 || ++this.#emptyLines > EMPTY_LINES) throw bad('its first line is malformed')
    return bytes.subarray(2)
  }

  #begin(head: RequestHead): void {
    if (!head.hasBody) {
      this.#step = 'ended'
      this.#sink.head(head)
      this.#sink.end()
      return
    }
    const length = fieldOf(head.headers, 'content-length')
    this.#left = Number(length ?? 0)
    this.#step = length === undefined ? 'chunk-line' : 'length'
    this.#sink.head(head)
  }

  /** Where the empty line begins that ends a head or the trailers; negative where it has not come. */
  #endOfFields(bytes: Buffer): number {
    const end = bytes.indexOf('\r\n\r\n')
    if (end > this.#limits.headerBytes || (end < 0 && bytes.length > this.#limits.headerBytes))
      throw new NetworkDenied(431, 'headers-too-large', 'The headers are too large')
    return end
  }

  #readSized(bytes: Buffer): Buffer {
    const part = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left)
    this.#left -= part.length
    const whole = this.#left === 0
    const byLength = this.#step === 'length'
    if (whole) this.#step = byLength ? 'ended' : 'chunk-end'
    this.#sink.data(part)
    if (whole && byLength) this.#sink.end()
    return whole ? bytes.subarray(part.length) : EMPTY
  }

  /** No client sends extensions of chunks, and readers differ in where one ends. */
  #readChunkLine(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n')
    if (end > CHUNK_LINE || (end < 0 && bytes.length > CHUNK_LINE)) throw bad('a chunk has no size')
    if (end < 0) {
      if (!/^[0-9A-Fa-f]+\r?$/.test(bytes.toString('latin1'))) throw bad('a chunk has no size')
      return undefined
    }
    const line = bytes.toString('latin1', 0, end)
    if (!/^[0-9A-Fa-f]{1,12}$/.test(line)) throw bad('a chunk has no size')
    this.#left = Number.parseInt(line, 16)
    this.#step = this.#left === 0 ? 'trailers' : 'chunk'
    return bytes.subarray(end + 2)
  }

  /** They must be well-formed, and go no further: a header that comes late was not judged. */
  #readTrailers(bytes: Buffer): Buffer | undefined {
    if (bytes.length < 2) return undefined
    if (bytes[0] === 13 && bytes[1] === 10) return this.#endBehind(bytes, 2)
    const end = this.#endOfFields(bytes)
    if (end < 0) {
      if (hasBareLineFeed(bytes)) throw bad('a line ends without a return')
      return undefined
    }
    fieldsOf(bytes.toString('latin1', 0, end), 0, this.#limits.headerCount)
    return this.#endBehind(bytes, end + 4)
  }

  #endBehind(bytes: Buffer, at: number): Buffer {
    this.#step = 'ended'
    this.#sink.end()
    return bytes.subarray(at)
  }
}

const LINE = /^([A-Z][A-Z-]{0,31}) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.([01])$/

const bad = (what: string): NetworkDenied =>
  new NetworkDenied(400, 'bad-framing', `The request is not strict HTTP/1.1: ${what}`)

const isUpperCase = (byte: number | undefined): boolean => byte !== undefined && byte >= 65 && byte <= 90

/** A folded line begins with a blank, so its name is none: refused like every other line that is no header. */
function fieldsOf(text: string, from: number, most: number): Headers {
  const found: (readonly [string, string])[] = []
  for (let at = from; at < text.length; ) {
    const next = text.indexOf('\r\n', at)
    const to = next < 0 ? text.length : next
    const colon = text.indexOf(':', at)
    if (colon < 0 || colon >= to) throw bad('a header is malformed')
    const name = text.slice(at, colon)
    const value = valueBetween(text, colon + 1, to)
    if (!isHeader(name, value)) throw bad('a header is malformed')
    if (found.length === most) throw new NetworkDenied(431, 'headers-too-large', 'There are too many headers')
    found.push([name.toLowerCase(), value])
    at = to + 2
  }
  return found
}

/** Blanks and tabs only: `trim` would take characters that make a value malformed. */
function valueBetween(text: string, from: number, to: number): string {
  const blank = (at: number): boolean => text.charCodeAt(at) === 32 || text.charCodeAt(at) === 9
  let [first, last] = [from, to]
  while (first < last && blank(first)) first++
  while (last > first && blank(last - 1)) last--
  return text.slice(first, last)
}

const fieldOf = (headers: Headers, name: string): string | undefined => {
  for (const header of headers) if (header[0] === name) return header[1]
  return undefined
}

/** Two statements about where a request ends are an attack on whoever reads behind us. */
function headOf(start: RegExpExecArray, headers: Headers): RequestHead {
  const [, method = '', target = '', minor] = start
  const length = fieldOf(headers, 'content-length')
  const chunked = fieldOf(headers, 'transfer-encoding') !== undefined
  const isNew = minor === '1'
  const framing = badFraming(headers)
  // Python's library names the host of a CONNECT in its first line only. What follows its head is no body.
  const isConnect = method === 'CONNECT'
  if (framing !== undefined && !(isConnect && framing === 'no-host'))
    throw new NetworkDenied(400, 'bad-framing', `The request is ambiguous: ${framing}`)
  if (isConnect && (chunked || (length !== undefined && length !== '0'))) throw bad('CONNECT has no body')
  if (chunked && !isNew) throw bad('HTTP/1.0 has no chunks')
  if (length !== undefined && length.length > 15) throw bad('its length is no length')
  const tokens = connectionTokens(headers)
  const offer = fieldOf(headers, 'upgrade')
  return {
    method,
    target,
    isNew,
    headers,
    hasBody: chunked || Number(length ?? 0) > 0,
    keepAlive: isNew && !tokens.includes('close'),
    upgrade: offer !== undefined && tokens.includes('upgrade') ? offer.trim().toLowerCase() : undefined,
    expect: fieldOf(headers, 'expect')?.toLowerCase(),
  }
}

function connectionTokens(headers: Headers): readonly string[] {
  const tokens: string[] = []
  for (const [name, value] of headers)
    if (name === 'connection' || name === 'proxy-connection')
      for (const token of value.split(',')) tokens.push(token.trim().toLowerCase())
  return tokens
}
