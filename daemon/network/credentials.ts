// pure
import type { CredentialGrant } from '../contract/profile.ts'
import { type Hostname, type HostPattern, matchesHost, parseHostPattern } from './hostname.ts'
import type { Headers } from './request-nature.ts'
import { spellings } from './spellings.ts'

/** A grant with its secret. It lives in the daemon's memory only; `toJSON` keeps it out of records and logs. */
export class Credential {
  readonly placeholder: string
  readonly header: string | undefined
  readonly query: string | undefined
  readonly #hosts: readonly HostPattern[]
  readonly #secret: string

  constructor(grant: CredentialGrant, secret: string) {
    this.placeholder = grant.placeholder
    this.header = grant.header?.toLowerCase()
    this.query = grant.query
    this.#hosts = grant.hosts.map(parseHostPattern).filter((pattern) => pattern !== undefined)
    this.#secret = secret
  }

  toJSON(): string {
    return `credential ${this.placeholder}`
  }

  goesTo(host: Hostname): boolean {
    return this.#hosts.some((pattern) => matchesHost(pattern, host))
  }

  reveal(): string {
    return this.#secret
  }

  /** The secret in every form in which it could stand somewhere. */
  spellings(): readonly string[] {
    return spellings(this.#secret)
  }
}

export interface Filled {
  readonly target: string
  readonly headers: Headers
  /** Every spelling of the secrets that went out: what must not come back. Empty: nothing was put in. */
  readonly secrets: readonly Secret[]
}

export interface Secret {
  readonly value: string
  readonly placeholder: string
}

/** Puts secrets in the place of their placeholders, only for the hosts, header and query parameter of each grant. */
export function fillIn(
  credentials: readonly Credential[],
  host: Hostname,
  scheme: 'http' | 'https',
  target: string,
  headers: Headers,
): Filled {
  let filled: Filled = { target, headers, secrets: [] }
  for (const credential of credentials) {
    // In clear text everybody on the way would read it; only an address that was opted into by hand may get that.
    if (scheme !== 'https' && host.address === undefined) continue
    if (credential.goesTo(host)) filled = fillOne(credential, filled)
  }
  // The agent chooses how many headers hold a placeholder; everything that comes back is searched for each secret.
  return filled.secrets.length === 0 ? filled : { ...filled, secrets: eachOnce(filled.secrets) }
}

const eachOnce = (secrets: readonly Secret[]): readonly Secret[] =>
  [...new Map([...secrets].reverse().map((secret) => [secret.value, secret])).values()].reverse()

function fillOne(credential: Credential, before: Filled): Filled {
  const { placeholder } = credential
  const secret = credential.reveal()
  const secrets: Secret[] = []
  const headers = before.headers.map(([name, value]) => {
    if (name.toLowerCase() !== credential.header) return [name, value] as const
    const basic = basicWith(value, placeholder, secret)
    if (basic !== undefined) secrets.push({ value: basic.slice('Basic '.length), placeholder })
    const changed = basic ?? value.replaceAll(placeholder, secret)
    if (changed !== value) secrets.push(...secretsOf(credential))
    return [name, changed] as const
  })
  let { target } = before
  if (credential.query !== undefined) {
    target = fillQuery(target, credential.query, placeholder, secret)
    if (target !== before.target) secrets.push(...secretsOf(credential))
  }
  return { target, headers, secrets: [...before.secrets, ...secrets] }
}

const secretsOf = (credential: Credential): readonly Secret[] =>
  credential.spellings().map((value) => ({ value, placeholder: credential.placeholder }))

/** `Basic` hides the placeholder in base64, as git and curl send it. */
function basicWith(value: string, placeholder: string, secret: string): string | undefined {
  const encoded = /^basic +([A-Za-z0-9+/=]+)$/i.exec(value.trim())?.[1]
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  if (!text.includes(placeholder)) return undefined
  return `Basic ${Buffer.from(text.replaceAll(placeholder, secret)).toString('base64')}`
}

function fillQuery(target: string, parameter: string, placeholder: string, secret: string): string {
  const mark = target.indexOf('?')
  if (mark < 0) return target
  const query = target
    .slice(mark + 1)
    .split('&')
    .map((pair) =>
      pair === `${parameter}=${placeholder}` ? `${parameter}=${encodeURIComponent(secret)}` : pair,
    )
  return `${target.slice(0, mark + 1)}${query.join('&')}`
}

/** What could bring the answer in pieces, compressed, or in letters of two bytes: an echo in it would not be found. */
const HIDES: ReadonlySet<string> = new Set([
  'a-im',
  'accept-charset',
  'accept-encoding',
  'if-range',
  'range',
  'request-range',
  'x-ms-range',
])

/** The headers of a request with a secret: what answers it can be searched for an echo. */
export const searchable = (headers: Headers): Headers => [
  ...headers.filter(([name]) => !HIDES.has(name.toLowerCase())),
  ['accept-encoding', 'identity'],
]

/** However often it is said: one of them is enough for a reader. */
export const isCompressed = (headers: Headers): boolean =>
  headers.some(
    ([name, value]) => name.toLowerCase() === 'content-encoding' && value.trim().toLowerCase() !== 'identity',
  )

export const redactText = (text: string, secrets: readonly Secret[]): string =>
  secrets.reduce((shown, secret) => shown.replaceAll(secret.value, secret.placeholder), text)

/**
 * Replaces secrets in a stream of bytes. It holds back the bytes at the end of a piece in which a secret begins, so
 * that one which is cut by a chunk is found, and nothing else: who waits for an event waits for its last byte too.
 */
export class Redactor {
  readonly #secrets: readonly { readonly value: Buffer; readonly placeholder: Buffer }[]
  readonly #longest: number
  #rest: Buffer = Buffer.alloc(0)
  #found = 0

  constructor(secrets: readonly Secret[]) {
    // Longer ones first: one spelling may be the beginning of another.
    this.#secrets = [...secrets]
      .sort((a, b) => b.value.length - a.value.length)
      .map(({ value, placeholder }) => ({
        value: Buffer.from(value, 'latin1'),
        placeholder: Buffer.from(placeholder),
      }))
    this.#longest = Math.max(1, ...this.#secrets.map((secret) => secret.value.length))
  }

  /** How many were replaced. */
  get found(): number {
    return this.#found
  }

  push(chunk: Uint8Array): Buffer {
    const [clean, rest] = this.#replace(Buffer.concat([this.#rest, chunk]), false)
    this.#rest = rest
    return clean
  }

  end(): Buffer {
    return this.#replace(this.#rest, true)[0]
  }

  #replace(bytes: Buffer, final: boolean): [Buffer, Buffer] {
    const parts: Buffer[] = []
    // Where each of them comes next: searched anew only where that was passed, or an echo of many would be read as
    // often as there are hits.
    const next = this.#secrets.map(() => -1)
    let from = 0
    for (;;) {
      const hit = this.#first(bytes, from, next)
      if (hit === undefined) break
      parts.push(bytes.subarray(from, hit.at), hit.placeholder)
      from = hit.at + hit.length
      this.#found++
    }
    const keep = final ? bytes.length : this.#begun(bytes, from)
    parts.push(bytes.subarray(from, keep))
    return [Buffer.concat(parts), bytes.subarray(keep)]
  }

  /** Where at the end of these bytes a secret begins that could go on in the next ones. */
  #begun(bytes: Buffer, from: number): number {
    for (let at = Math.max(from, bytes.length - this.#longest + 1); at < bytes.length; at++)
      for (const { value } of this.#secrets)
        if (bytes[at] === value[0] && value.subarray(0, bytes.length - at).equals(bytes.subarray(at)))
          return at
    return bytes.length
  }

  #first(
    bytes: Buffer,
    from: number,
    next: number[],
  ): { at: number; length: number; placeholder: Buffer } | undefined {
    let best: { at: number; length: number; placeholder: Buffer } | undefined
    for (const [index, { value, placeholder }] of this.#secrets.entries()) {
      let at = next[index] ?? -1
      if (at < from) {
        const found = bytes.indexOf(value, from)
        at = found < 0 ? bytes.length : found
        next[index] = at
      }
      if (at < bytes.length && (best === undefined || at < best.at))
        best = { at, length: value.length, placeholder }
    }
    return best
  }
}
