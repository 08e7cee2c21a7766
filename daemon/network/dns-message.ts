// pure
import type { Address } from './address.ts'

export const TYPE = { A: 1, PTR: 12, AAAA: 28 } as const
export const RCODE = { ok: 0, malformed: 1, failed: 2, noName: 3, notImplemented: 4, refused: 5 } as const

export interface Question {
  readonly id: number
  readonly recursionDesired: boolean
  /** The name's bytes with dots between labels; what it may contain is `parseHostname`'s business. */
  readonly name: string
  readonly type: number
  /** The question section as it came, to be sent back. */
  readonly bytes: Buffer
}

export type ParsedQuery =
  | { ok: true; question: Question }
  | { ok: false; id: number; rcode: number }
  | { ok: false; id: undefined }

const HEADER = 12

/** One question of class IN, uncompressed, as every resolver sends it; all else is answered with an error or not at all. */
export function parseQuery(message: Buffer): ParsedQuery {
  if (message.length < HEADER) return { ok: false, id: undefined }
  const id = message.readUInt16BE(0)
  const flags = message.readUInt16BE(2)
  // Never answer an answer: two servers would talk for ever.
  if ((flags & 0x8000) !== 0) return { ok: false, id: undefined }
  if (((flags >> 11) & 15) !== 0) return { ok: false, id, rcode: RCODE.notImplemented }
  const [questions, answers] = [message.readUInt16BE(4), message.readUInt16BE(6)]
  const read = questions === 1 && answers === 0 ? readName(message) : undefined
  if (read === undefined || read.end + 4 > message.length) return { ok: false, id, rcode: RCODE.malformed }
  if (message.readUInt16BE(read.end + 2) !== 1) return { ok: false, id, rcode: RCODE.refused }
  const type = message.readUInt16BE(read.end)
  const bytes = message.subarray(HEADER, read.end + 4)
  const recursionDesired = (flags & 0x0100) !== 0
  return { ok: true, question: { id, recursionDesired, name: read.name, type, bytes } }
}

function readName(message: Buffer): { name: string; end: number } | undefined {
  const labels: string[] = []
  let at = HEADER
  for (let total = 0; ; ) {
    const length = message[at]
    if (length === undefined || length > 63) return undefined
    at += 1
    if (length === 0) return { name: labels.join('.'), end: at }
    total += length + 1
    if (total > 254 || at + length > message.length) return undefined
    const label = message.toString('latin1', at, at + length)
    // A dot inside a label would be read as two labels by whoever sees the text.
    if (label.includes('.')) return undefined
    labels.push(label)
    at += length
  }
}

/** Seconds for which programs may keep an answer. It never changes while the branch lives. */
const TTL = 300

export function answer(question: Question, rcode: number, addresses: readonly Address[] = []): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt16BE(question.id, 0)
  header.writeUInt16BE(0x8080 | (question.recursionDesired ? 0x0100 : 0) | rcode, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(addresses.length, 6)
  return Buffer.concat([header, question.bytes, ...addresses.map(record)])
}

function record(address: Address): Buffer {
  const fixed = Buffer.alloc(12)
  // A pointer to the question's name.
  fixed.writeUInt16BE(0xc000 | HEADER, 0)
  fixed.writeUInt16BE(address.family === 4 ? TYPE.A : TYPE.AAAA, 2)
  fixed.writeUInt16BE(1, 4)
  fixed.writeUInt32BE(TTL, 6)
  fixed.writeUInt16BE(address.bytes.length, 10)
  return Buffer.concat([fixed, Buffer.from(address.bytes)])
}

/** For queries that could not be read. */
export function failure(id: number, rcode: number): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(0x8080 | rcode, 2)
  return header
}
