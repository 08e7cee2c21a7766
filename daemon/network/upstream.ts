import { connect as netConnect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { SecureContext } from 'node:tls'
import type { Address, Cidr } from './address.ts'
import { type AnswerHandler, Call } from './exchange.ts'
import { formatAuthority, type Hostname, urlHost } from './hostname.ts'
import type { NetworkLimits } from './limits.ts'
import { Origin } from './origin.ts'
import type { Headers } from './request-nature.ts'
import type { PinnedResolver } from './resolver.ts'
import { upstreamError } from './upstream-error.ts'
import { encodeHead, framingOf } from './upstream-request.ts'

export interface Destination {
  readonly scheme: 'http' | 'https'
  readonly host: Hostname
  readonly port: number
  /** Ranges outside the public ones that the rule lets this host resolve to. */
  readonly allowed: readonly Cidr[]
}

export interface UpstreamRequest extends Destination {
  readonly method: string
  readonly target: string
  /** Complete but for `host`; framing headers other than `content-length` are not among them. */
  readonly headers: Headers
  readonly body: Readable | Buffer | null
  /** A protocol to upgrade to. */
  readonly upgrade?: string
  /** Told about every piece of a streamed body before it leaves; may throw. */
  readonly sending?: (bytes: number) => void
}

const MAX_ORIGINS = 256

/** Loaded by the first connection that needs it: many agents make none. */
const tls = (): typeof import('node:tls') => process.getBuiltinModule('node:tls')

/** By the list of a rule, which lives as long as the branch. */
const ranges = new WeakMap<readonly Cidr[], string>()

function rangesOf(allowed: readonly Cidr[]): string {
  const known = ranges.get(allowed)
  if (known !== undefined) return known
  const text = allowed.map((cidr) => `${cidr.address.text}/${cidr.prefix}`).join()
  ranges.set(allowed, text)
  return text
}

const contexts = new Map<string, SecureContext>()

/** Reading all authorities takes longer than a handshake, so each set of them is read once. */
function trusted(more: readonly string[]): SecureContext {
  const key = more.join('')
  const known = contexts.get(key)
  if (known !== undefined) return known
  const { createSecureContext, rootCertificates } = tls()
  const ca = more.length === 0 ? undefined : [...rootCertificates, ...more]
  const context = createSecureContext({ minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) })
  contexts.set(key, context)
  return context
}

/**
 * The only place that opens connections to the outside, for one branch: no other branch ever shares a socket with it.
 * Requests are written anew from their judged parts, and the addresses dialled are the ones that were judged.
 */
export class Upstream {
  readonly #resolver: PinnedResolver
  readonly #limits: NetworkLimits
  readonly #ca: readonly string[]
  readonly #origins = new Map<string, Origin>()
  #clock: NodeJS.Timeout | undefined

  /** `ca` are further authorities that upstream certificates may come from (a company's own). */
  constructor(resolver: PinnedResolver, limits: NetworkLimits, ca: readonly string[] = []) {
    this.#resolver = resolver
    this.#limits = limits
    this.#ca = ca
  }

  /** Throws `NetworkDenied` when the destination may not be dialled; everything later goes to the handler. */
  async dispatch(request: UpstreamRequest, handler: AnswerHandler): Promise<void> {
    const { host, allowed } = request
    if (!this.#resolver.mayDial(host, allowed)) await this.#resolver.resolve(host, allowed)
    const { method, target, headers, body, upgrade, sending, port, scheme } = request
    const framing = framingOf(headers, body === null || Buffer.isBuffer(body) ? body : 'stream')
    const authority = formatAuthority(host, port, scheme)
    const call = new Call({
      head: encodeHead({ method, target, authority, headers, upgrade }, framing),
      method,
      upgrade: upgrade !== undefined,
      body,
      length: framing.kind === 'length' ? framing.bytes : undefined,
      sending,
      handler,
    })
    // Whoever asked may have gone while the name was looked up.
    if (!call.over) this.#originOf(request).dispatch(call)
  }

  /** A plain connection to a judged address, for tunnels and exposed ports. */
  connect(destination: Destination): Promise<Socket> {
    return this.#connect(destination, true)
  }

  async #connect(destination: Destination, allowHalfOpen: boolean): Promise<Socket> {
    const addresses = await this.#resolver.resolve(destination.host, destination.allowed)
    let failure: unknown
    for (const address of addresses.slice(0, this.#limits.addresses)) {
      try {
        return await this.#dial(address, destination.port, allowHalfOpen)
      } catch (error) {
        failure = error
      }
    }
    throw upstreamError(failure)
  }

  /** `ENOTSENT` marks failures before any byte of a request could leave. */
  async #secure(destination: Destination): Promise<Socket> {
    const socket = await this.#connect(destination, false)
    socket.setNoDelay(true)
    if (destination.scheme === 'http') return socket
    const { host } = destination
    return await new Promise((done, failed) => {
      const secure = tls().connect({
        socket,
        // An address has no SNI; its certificate must name the address.
        ...(host.address === undefined ? { servername: host.text } : { host: host.text }),
        ALPNProtocols: ['http/1.1'],
        secureContext: trusted(this.#ca),
      })
      const timer = setTimeout(() => secure.destroy(timeout('TLS handshake')), this.#limits.connectMs)
      secure.once('secureConnect', () => {
        clearTimeout(timer)
        secure.removeListener('error', failed)
        done(secure)
      })
      secure.once('error', failed)
      secure.once('close', () => clearTimeout(timer))
    })
  }

  #dial(address: Address, port: number, allowHalfOpen: boolean): Promise<Socket> {
    return new Promise((done, failed) => {
      const socket = netConnect({ host: address.text, port, family: address.family, allowHalfOpen })
      const timer = setTimeout(() => socket.destroy(timeout('connection')), this.#limits.connectMs)
      socket.once('connect', () => {
        clearTimeout(timer)
        socket.removeListener('error', failed)
        done(socket)
      })
      socket.once('error', failed)
      socket.once('close', () => clearTimeout(timer))
    })
  }

  #originOf(destination: Destination): Origin {
    const { scheme, host, port, allowed } = destination
    const key = `${scheme}://${urlHost(host)}:${port} ${rangesOf(allowed)}`
    const known = this.#origins.get(key)
    if (known !== undefined) return known
    const origin = new Origin(this.#limits, () => this.#secure(destination))
    this.#origins.set(key, origin)
    this.#forgetUnused()
    this.#clock ??= this.#startClock()
    return origin
  }

  /** One clock for all of them: a timer per request would cost more than the rest of it. */
  #startClock(): NodeJS.Timeout {
    const { responseMs, responseIdleMs } = this.#limits
    const clock = setInterval(
      () => {
        const now = performance.now()
        for (const origin of this.#origins.values()) origin.tick(now)
      },
      Math.min(1_000, responseMs / 4, responseIdleMs / 4),
    )
    return clock.unref()
  }

  /** The agent chooses the hosts, and there are more of them than memory. */
  #forgetUnused(): void {
    for (const [key, origin] of this.#origins) {
      if (this.#origins.size <= MAX_ORIGINS) return
      if (!origin.unused) continue
      this.#origins.delete(key)
      origin.close()
    }
  }

  close(): void {
    clearInterval(this.#clock)
    const origins = [...this.#origins.values()]
    this.#origins.clear()
    for (const origin of origins) origin.close()
  }
}

const timeout = (what: string): Error =>
  Object.assign(new Error(`The ${what} took too long`), { code: 'ETIMEDOUT' })
