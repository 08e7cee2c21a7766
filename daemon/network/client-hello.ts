// pure

export type ClientHello =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'not-tls' }
  | {
      readonly kind: 'hello'
      /** As it is on the wire; undefined when there is no name, more than one, or the extension is malformed. */
      readonly serverName: Buffer | undefined
      /** Encrypted ClientHello: the real name is hidden, so what is seen proves nothing. */
      readonly encrypted: boolean
    }

/** Large enough for post-quantum keys and session tickets; every client's fits into a record or two. */
const MAX_HELLO = 16_384
const MAX_RECORDS = 16

/** Reads the names in the first TLS message without ending the connection: for tunnels, which stay opaque. */
export function readClientHello(bytes: Buffer): ClientHello {
  if (bytes.length > 0 && bytes[0] !== 0x16) return { kind: 'not-tls' }
  const message = handshake(bytes)
  if (message === 'incomplete') return { kind: bytes.length > MAX_HELLO ? 'not-tls' : 'incomplete' }
  if (message === 'malformed' || message[0] !== 1) return { kind: 'not-tls' }
  // Version and random, then three vectors, then the extensions.
  let at = 4 + 2 + 32
  at += 1 + (message[at] ?? 0)
  at += 2 + word(message, at)
  at += 1 + (message[at] ?? 0)
  const end = Math.min(message.length, at + 2 + word(message, at))
  at += 2
  const names: (Buffer | undefined)[] = []
  let encrypted = false
  while (at + 4 <= end) {
    const type = word(message, at)
    const body = message.subarray(at + 4, at + 4 + word(message, at + 2))
    if (type === 0) names.push(nameIn(body))
    if (type === 0xfe0d) encrypted = true
    at += 4 + body.length
    if (body.length < word(message, at - body.length - 2)) break
  }
  return { kind: 'hello', serverName: names.length === 1 ? names[0] : undefined, encrypted }
}

/**
 * The first handshake message, put together from its records. This is called again with every segment, so its cost is
 * bounded: a message in thousands of records of one byte is no client's.
 */
function handshake(bytes: Buffer): Buffer | 'incomplete' | 'malformed' {
  const parts: Buffer[] = []
  let have = 0
  for (let at = 0; at + 5 <= bytes.length; ) {
    const length = word(bytes, at + 3)
    if (bytes[at] !== 0x16 || length === 0 || parts.length === MAX_RECORDS) return 'malformed'
    if (at + 5 + length > bytes.length) return 'incomplete'
    parts.push(bytes.subarray(at + 5, at + 5 + length))
    have += length
    at += 5 + length
    const all = Buffer.concat(parts)
    const needed = have >= 4 ? 4 + all.readUIntBE(1, 3) : Number.POSITIVE_INFINITY
    if (have >= needed) return all.subarray(0, needed)
    if (have >= 4 && needed > MAX_HELLO) return 'malformed'
  }
  return 'incomplete'
}

/** Exactly one entry of type host_name: a second one would be read by somebody else. */
function nameIn(body: Buffer): Buffer | undefined {
  if (body.length < 5 || word(body, 0) !== body.length - 2 || body[2] !== 0) return undefined
  const length = word(body, 3)
  return length === body.length - 5 && length > 0 ? body.subarray(5) : undefined
}

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
