import { CODE, Http2Fault } from './fault.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** What every connection begins with. */
export class Preface {
  #seen = 0

  /** What stands behind it in a piece of the connection. */
  behind(chunk: Buffer): Buffer {
    if (this.#seen === PREFACE.length) return chunk
    const length = Math.min(chunk.length, PREFACE.length - this.#seen)
    if (chunk.compare(PREFACE, this.#seen, this.#seen + length, 0, length) !== 0)
      throw new Http2Fault(CODE.PROTOCOL_ERROR, 'The connection does not begin as one of HTTP/2')
    this.#seen += length
    return chunk.subarray(length)
  }
}
