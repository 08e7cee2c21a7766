// pure

/** One IP address; `text` is the only spelling used for comparing, logging and dialling. */
export interface Address {
  readonly family: 4 | 6
  /** 4 or 16 bytes. */
  readonly bytes: readonly number[]
  readonly text: string
}

export type AddressRange =
  | 'public'
  | 'unspecified'
  | 'loopback'
  | 'private'
  | 'shared'
  | 'link-local'
  | 'unique-local'
  | 'metadata'
  | 'multicast'
  | 'broadcast'
  | 'reserved'
  | 'host'

export interface Cidr {
  readonly address: Address
  readonly prefix: number
}

/**
 * Strict: four decimal parts without leading zeros, or RFC 4291 text without a zone. The other forms that C libraries
 * accept (octal, hex, one or two parts) name an address that a reader does not see, so they are no addresses here.
 */
export function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parse6(text) : parse4(text)
}

function parse4(text: string): Address | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  if (!parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined
  return { family: 4, bytes: parts.map(Number), text }
}

function parse6(text: string): Address | undefined {
  if (!/^[0-9a-fA-F:.]{2,45}$/.test(text)) return undefined
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const head = words(halves[0] ?? '', halves.length === 1)
  const tail = words(halves[1] ?? '', true)
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined
  const all = [...head, ...Array<number>(missing).fill(0), ...tail]
  return address6(all.flatMap((word) => [word >> 8, word & 255]))
}

/** The 16-bit words of one side of `::`; an embedded IPv4 address may only stand last. */
function words(text: string, last: boolean): number[] | undefined {
  if (text === '') return []
  const found: number[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    if (part.includes('.')) {
      const embedded = last && index === parts.length - 1 ? parse4(part) : undefined
      if (embedded === undefined) return undefined
      const [a = 0, b = 0, c = 0, d = 0] = embedded.bytes
      found.push((a << 8) | b, (c << 8) | d)
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) found.push(Number.parseInt(part, 16))
    else return undefined
  }
  return found
}

export function address4(bytes: readonly number[]): Address {
  return { family: 4, bytes, text: bytes.join('.') }
}

export function address6(bytes: readonly number[]): Address {
  return { family: 6, bytes, text: text6(bytes) }
}

/** RFC 5952: lower case, the first longest run of zero words as `::`. */
function text6(bytes: readonly number[]): string {
  const all: number[] = []
  for (let at = 0; at < 16; at += 2) all.push(((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0))
  let best = { from: -1, length: 1 }
  for (let from = 0; from < 8; from++) {
    let length = 0
    while (from + length < 8 && all[from + length] === 0) length++
    if (length > best.length) best = { from, length }
  }
  const hex = (part: number[]): string => part.map((word) => word.toString(16)).join(':')
  if (best.from < 0) return hex(all)
  return `${hex(all.slice(0, best.from))}::${hex(all.slice(best.from + best.length))}`
}

export function parseCidr(text: string): Cidr | undefined {
  const [base = '', length, ...more] = text.split('/')
  const address = parseAddress(base)
  if (address === undefined || more.length > 0) return undefined
  const bits = address.bytes.length * 8
  if (length === undefined) return { address, prefix: bits }
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > bits) return undefined
  return { address, prefix: Number(length) }
}

export function inCidr(address: Address, cidr: Cidr): boolean {
  if (address.family !== cidr.address.family) return false
  for (let bit = 0; bit < cidr.prefix; bit += 8) {
    const mask = cidr.prefix - bit >= 8 ? 255 : (0xff00 >> (cidr.prefix - bit)) & 255
    const at = bit >> 3
    if (((address.bytes[at] ?? 0) & mask) !== ((cidr.address.bytes[at] ?? 0) & mask)) return false
  }
  return true
}

/** First match wins: the exact metadata services stand before the ranges that contain them. */
const RANGES: readonly (readonly [AddressRange, readonly string[]])[] = [
  [
    'metadata',
    [
      '169.254.169.254',
      '169.254.169.253',
      '169.254.170.2',
      '169.254.170.23',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
      'fd00:ec2::/32',
      'fd20:ce::254',
    ],
  ],
  ['broadcast', ['255.255.255.255']],
  ['loopback', ['127.0.0.0/8', '::1']],
  ['unspecified', ['0.0.0.0/8', '::']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']],
  ['shared', ['100.64.0.0/10']],
  ['link-local', ['169.254.0.0/16', 'fe80::/10', 'fec0::/10']],
  ['unique-local', ['fc00::/7']],
  ['multicast', ['224.0.0.0/4', 'ff00::/8']],
  [
    'reserved',
    [
      '192.0.0.0/24',
      '192.0.2.0/24',
      '192.88.99.0/24',
      '198.18.0.0/15',
      '198.51.100.0/24',
      '203.0.113.0/24',
      '240.0.0.0/4',
      '2001::/23',
      '2001:db8::/32',
      '2002::/16',
      '3fff::/20',
    ],
  ],
]

const TABLE = RANGES.flatMap(([range, texts]) =>
  texts.map((text) => {
    const cidr = parseCidr(text)
    if (cidr === undefined) throw new RangeError(`Bad range ${text}`)
    return { range, cidr }
  }),
)

/** Where the IPv4 address sits inside an IPv6 address of each transition scheme. */
const EMBEDDED: readonly (readonly [string, number, boolean])[] = [
  ['::ffff:0:0/96', 12, false],
  ['::ffff:0:0:0/96', 12, false],
  ['64:ff9b::/96', 12, false],
  ['64:ff9b:1::/48', 12, false],
  ['2002::/16', 2, false],
  // Teredo keeps the client's address with every bit inverted.
  ['2001::/32', 12, true],
  ['::/96', 12, false],
]

/** The IPv4 address that a translator, tunnel or the kernel itself would reach through this IPv6 address. */
export function embedded4(address: Address): Address | undefined {
  if (address.family !== 6) return undefined
  for (const [range, at, inverted] of EMBEDDED) {
    const cidr = parseCidr(range)
    if (cidr === undefined || !inCidr(address, cidr)) continue
    const bytes = address.bytes.slice(at, at + 4)
    return address4(inverted ? bytes.map((byte) => byte ^ 255) : bytes)
  }
  // ISATAP interface identifiers: ::0:5efe:a.b.c.d and ::200:5efe:a.b.c.d.
  const id = address.bytes.slice(8, 12)
  if ((id[0] === 0 || id[0] === 2) && id[1] === 0 && id[2] === 0x5e && id[3] === 0xfe)
    return address4(address.bytes.slice(12))
  return undefined
}

/** What kind of place an address is. `own` holds the canonical texts of every address of this host. */
export function classifyAddress(address: Address, own: ReadonlySet<string>): AddressRange {
  if (own.has(address.text))
    return address.text === '127.0.0.1' || address.text === '::1' ? 'loopback' : 'host'
  const listed = TABLE.find((row) => inCidr(address, row.cidr))?.range
  if (address.family === 4) return listed ?? 'public'
  // Before the table's verdict on 6to4, Teredo and the like: what they lead to is what matters.
  const inner = address.text === '::1' || address.text === '::' ? undefined : embedded4(address)
  const innerRange = inner === undefined ? 'public' : classifyAddress(inner, own)
  if (innerRange !== 'public') return innerRange
  if (listed !== undefined) return listed
  if (inner !== undefined && (mapped(address) || inCidr(address, NAT64))) return 'public'
  // Only 2000::/3 is handed out as global unicast.
  return ((address.bytes[0] ?? 0) & 0xe0) === 0x20 ? 'public' : 'reserved'
}

const MAPPED = { address: address6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0]), prefix: 96 }
const NAT64 = { address: address6([0, 0x64, 0xff, 0x9b, ...Array<number>(12).fill(0)]), prefix: 96 }
const mapped = (address: Address): boolean => inCidr(address, MAPPED)

/** An IPv4-mapped address is the IPv4 address: the kernel sends IPv4 packets for it. */
export const unmapped = (address: Address): Address =>
  mapped(address) ? address4(address.bytes.slice(12)) : address

const NEVER: ReadonlySet<AddressRange> = new Set(['unspecified', 'metadata', 'multicast', 'broadcast'])

export type AddressVerdict = { ok: true } | { ok: false; range: AddressRange; reason: string }

/**
 * May this address be dialled? Public ones may; others only if the rule names them; metadata services never, because
 * what they hand out is worth more than anything that a rule could want from them.
 */
export function judgeAddress(
  address: Address,
  own: ReadonlySet<string>,
  allowed: readonly Cidr[],
): AddressVerdict {
  const range = classifyAddress(address, own)
  if (range === 'public') return { ok: true }
  const plain = unmapped(address)
  if (!NEVER.has(range) && allowed.some((cidr) => inCidr(plain, cidr))) return { ok: true }
  return { ok: false, range, reason: `${address.text} is ${article(range)}` }
}

const article = (range: AddressRange): string =>
  range === 'host' ? 'an address of this host' : `in a ${range} range`
