import type { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { type Address, type Cidr, judgeAddress, parseAddress, unmapped } from './address.ts'
import { NetworkDenied } from './denial.ts'
import type { Hostname } from './hostname.ts'

export interface LookupAnswer {
  readonly addresses: readonly Address[]
  readonly ttlSeconds: number
}

/** The outside name service. Throws when the name has no address. */
export type Lookup = (name: string) => Promise<LookupAnswer>

/** Answers are kept at least this long, so that a zero TTL cannot rebind a name between two requests … */
const MIN_PIN_MS = 60_000
/** … and at most this long, so that a moved service is found again. */
const MAX_PIN_MS = 3_600_000
const FAILURE_MS = 5_000
const MAX_PINS = 4_096

interface Pin {
  readonly answer: Promise<LookupAnswer>
  /** The answer, once it is here. */
  known?: readonly Address[]
  until: number
}

/**
 * Turns a judged host into addresses that may be dialled. Names are resolved outside the branch, pinned, and every
 * address is judged at each use, so neither a new answer nor a new address of this host can slip through.
 */
export class PinnedResolver {
  readonly #lookup: Lookup
  readonly #own: () => ReadonlySet<string>
  readonly #pins = new Map<string, Pin>()

  constructor(lookup: Lookup = systemLookup(), own: () => ReadonlySet<string> = ownAddresses) {
    this.#lookup = lookup
    this.#own = own
  }

  /** All addresses of the host. One that may not be dialled refuses the whole name: a mixed answer is an attack. */
  async resolve(host: Hostname, allowed: readonly Cidr[]): Promise<readonly Address[]> {
    return this.#judged(
      host,
      host.address === undefined ? await this.#pinned(host.text) : [host.address],
      allowed,
    )
  }

  /** Whether the host may be dialled, where that needs no look-up. Throws as `resolve` does; false: ask that. */
  mayDial(host: Hostname, allowed: readonly Cidr[]): boolean {
    const pin = this.#pins.get(host.text)
    const known = pin !== undefined && pin.until > performance.now() ? pin.known : undefined
    const addresses = host.address === undefined ? known : [host.address]
    if (addresses === undefined) return false
    this.#judged(host, addresses, allowed)
    return true
  }

  #judged(host: Hostname, addresses: readonly Address[], allowed: readonly Cidr[]): readonly Address[] {
    const own = this.#own()
    for (const address of addresses) {
      const verdict = judgeAddress(address, own, allowed)
      if (verdict.ok) continue
      throw new NetworkDenied(403, `address-${verdict.range}`, `"${host.text}" leads to ${verdict.reason}`, {
        help: `network.rules: {hosts: ["${host.text}"], addresses: ["${address.text}"], …}`,
      })
    }
    return addresses.map(unmapped)
  }

  async #pinned(name: string): Promise<readonly Address[]> {
    const known = this.#pins.get(name)
    if (known !== undefined && known.until > performance.now()) return (await known.answer).addresses
    const pin: Pin = { answer: this.#find(name), until: Number.POSITIVE_INFINITY }
    this.#pins.delete(name)
    this.#pins.set(name, pin)
    for (const oldest of this.#pins.keys()) {
      if (this.#pins.size <= MAX_PINS) break
      this.#pins.delete(oldest)
    }
    try {
      const answer = await pin.answer
      const ttl = Math.min(Math.max(answer.ttlSeconds * 1000, MIN_PIN_MS), MAX_PIN_MS)
      pin.until = performance.now() + ttl
      pin.known = answer.addresses
      return answer.addresses
    } catch (error) {
      pin.until = performance.now() + FAILURE_MS
      throw error
    }
  }

  async #find(name: string): Promise<LookupAnswer> {
    try {
      const answer = await this.#lookup(name)
      if (answer.addresses.length > 0) return answer
    } catch (cause) {
      throw new NetworkDenied(502, 'name-unresolved', `"${name}" cannot be resolved`, { cause })
    }
    throw new NetworkDenied(502, 'name-unresolved', `"${name}" has no address`)
  }
}

let cachedOwn: { at: number; texts: ReadonlySet<string> } | undefined

/** Every address of this host, read again every second: interfaces come and go. */
export function ownAddresses(): ReadonlySet<string> {
  const at = performance.now()
  if (cachedOwn !== undefined && at - cachedOwn.at < 1_000) return cachedOwn.texts
  const texts = new Set<string>()
  for (const list of Object.values(networkInterfaces()))
    for (const { address } of list ?? []) {
      const parsed = parseAddress(address.replace(/%.*$/, ''))
      if (parsed !== undefined) texts.add(parsed.text)
    }
  cachedOwn = { at, texts }
  return texts
}

/**
 * `/etc/hosts` first, then DNS without search domains (getaddrinfo would try them, and would occupy a thread of the
 * pool while it waits). Both families are asked: a name may have only one.
 */
export function systemLookup(servers?: readonly string[]): Lookup {
  let made: Resolver | undefined
  return async (name) => {
    const fixed = servers === undefined ? await fromHostsFile(name) : []
    if (fixed.length > 0) return { addresses: fixed, ttlSeconds: 0 }
    made ??= makeResolver(servers)
    const resolver = made
    const answers = await Promise.allSettled([
      resolver.resolve4(name, { ttl: true }),
      resolver.resolve6(name, { ttl: true }),
    ])
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.length === 0)
      throw answers.find((answer) => answer.status === 'rejected')?.reason ?? new Error('ENODATA')
    const addresses = found.map((one) => parseAddress(one.address)).filter((one) => one !== undefined)
    return { addresses, ttlSeconds: Math.min(...found.map((one) => one.ttl)) }
  }
}

/** With the first name that is asked for: it reads files, and most agents ask for none. */
function makeResolver(servers: readonly string[] | undefined): Resolver {
  const { Resolver } = process.getBuiltinModule('node:dns/promises')
  const resolver = new Resolver({ timeout: 3_000, tries: 2 })
  if (servers !== undefined) resolver.setServers([...servers])
  return resolver
}

async function fromHostsFile(name: string): Promise<readonly Address[]> {
  const text = await readFile('/etc/hosts', 'utf8').catch(() => '')
  const found: Address[] = []
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const parsed = parseAddress(address)
    if (parsed !== undefined && names.some((one) => one.toLowerCase() === name)) found.push(parsed)
  }
  return found
}
