import { connect as netConnect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { createSecureContext, rootCertificates, type SecureContext, connect as tlsConnect } from 'node:tls'
import type { Dispatcher, Pool } from 'undici'
import type { Address, Cidr } from './address.ts'
import { flat } from './headers.ts'
import { type Hostname, urlHost } from './hostname.ts'
import type { NetworkLimits } from './limits.ts'
import type { Headers } from './request-nature.ts'
import type { PinnedResolver } from './resolver.ts'
import { upstreamError } from './upstream-error.ts'

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
}

const MAX_POOLS = 256

let client: Promise<typeof import('undici')> | undefined

/** Loaded with the first request: most agents make none, and the client is larger than all the rest of the program. */
export function loadClient(): Promise<typeof import('undici')> {
  client ??= import('undici')
  return client
}

const contexts = new Map<string, SecureContext>()

/** Reading all authorities takes longer than a handshake, so each set of them is read once. */
function trusted(more: readonly string[]): SecureContext {
  const key = more.join('')
  const known = contexts.get(key)
  if (known !== undefined) return known
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
  readonly #pools = new Map<string, Pool>()

  /** `ca` are further authorities that upstream certificates may come from (a company's own). */
  constructor(resolver: PinnedResolver, limits: NetworkLimits, ca: readonly string[] = []) {
    this.#resolver = resolver
    this.#limits = limits
    this.#ca = ca
  }

  /** Throws `NetworkDenied` when the destination may not be dialled; everything later goes to the handler. */
  async dispatch(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): Promise<void> {
    await this.#resolver.resolve(request.host, request.allowed)
    const { Pool: PoolClass } = await loadClient()
    this.#poolFor(request, PoolClass).dispatch(
      {
        method: request.method as Dispatcher.HttpMethod,
        path: request.target,
        headers: flat(request.headers),
        body: request.body,
        ...(request.upgrade === undefined ? {} : { upgrade: request.upgrade }),
      },
      handler,
    )
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
      const secure = tlsConnect({
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

  #poolFor(destination: Destination, PoolClass: typeof Pool): Pool {
    const { scheme, host, port, allowed } = destination
    const origin = `${scheme}://${urlHost(host)}:${port}`
    const key = `${origin} ${allowed.map((cidr) => `${cidr.address.text}/${cidr.prefix}`).join()}`
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const pool = new PoolClass(origin, {
      connections: this.#limits.upstreamSockets,
      pipelining: 1,
      allowH2: false,
      headersTimeout: this.#limits.responseMs,
      bodyTimeout: this.#limits.responseIdleMs,
      maxHeaderSize: this.#limits.responseHeaderBytes,
      keepAliveTimeout: 4_000,
      connect: (_options, done) => {
        this.#secure(destination).then(
          (socket) => done(null, socket as never),
          (error: unknown) => done(upstreamError(error), null),
        )
      },
    })
    this.#pools.set(key, pool)
    this.#closeOldest()
    return pool
  }

  #closeOldest(): void {
    for (const [key, pool] of this.#pools) {
      if (this.#pools.size <= MAX_POOLS) return
      this.#pools.delete(key)
      // Waits for its running requests; a failure here is the requests' own failure.
      pool.close().catch(() => undefined)
    }
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map((pool) => pool.destroy()))
  }
}

const timeout = (what: string): Error =>
  Object.assign(new Error(`The ${what} took too long`), { code: 'ETIMEDOUT' })
