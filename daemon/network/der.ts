// pure

/** The part of DER that an X.509 certificate needs. Lengths are always definite and minimal. */
export function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

export const sequence = (...contents: readonly Uint8Array[]): Buffer => der(0x30, ...contents)
export const set = (...contents: readonly Uint8Array[]): Buffer => der(0x31, ...contents)
export const octets = (bytes: Uint8Array): Buffer => der(0x04, bytes)
export const bits = (bytes: Uint8Array, unused = 0): Buffer => der(0x03, Buffer.from([unused]), bytes)
export const utf8 = (text: string): Buffer => der(0x0c, Buffer.from(text, 'utf8'))
export const boolean = (value: boolean): Buffer => der(0x01, Buffer.from([value ? 0xff : 0]))
/** `[n]` constructed, as EXPLICIT tags are. */
export const explicit = (n: number, ...contents: readonly Uint8Array[]): Buffer => der(0xa0 | n, ...contents)
/** `[n]` primitive, as IMPLICIT tags of strings are. */
export const implicit = (n: number, bytes: Uint8Array): Buffer => der(0x80 | n, bytes)

/** Non-negative: a leading zero keeps the sign bit clear, and there is no other leading zero. */
export function integer(value: Uint8Array): Buffer {
  let from = 0
  while (from < value.length - 1 && value[from] === 0) from++
  const bytes = value.subarray(from)
  return ((bytes[0] ?? 0) & 0x80) === 0 ? der(0x02, bytes) : der(0x02, Buffer.from([0]), bytes)
}

export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128))
    bytes.unshift(0x80 | (rest & 0x7f))
  return bytes
}

/** UTCTime until 2049, GeneralizedTime from then on, as RFC 5280 asks. */
export function time(date: Date): Buffer {
  const text = date.toISOString().replace(/[-:T]|\.\d+/g, '')
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text))
}
