import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { closeSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import {
  createServer as createHttp,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttps } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { SecureContext } from 'node:tls'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import type { NetworkProfile } from '../../daemon/contract/profile.ts'
import { parseAddress } from '../../daemon/network/address.ts'
import { BranchAuthority } from '../../daemon/network/authority.ts'
import { type BranchNetwork, type NetworkOptions, openNetwork } from '../../daemon/network/gate-network.ts'
import { prepareNetns } from '../../daemon/network/namespace.ts'
import { hostOf } from '../fixtures/network-rules.ts'

/** Somewhere else: servers on a loopback address of their own, reached by whatever name the test resolves to it. */
export class Outside {
  readonly address = `127.88.${randomInt(1, 255)}.${randomInt(1, 255)}`
  readonly authority = new BranchAuthority('outside')
  readonly requests: {
    method: string
    url: string
    host: string
    headers: IncomingMessage['headers']
    body: string
  }[] = []
  readonly #servers: Server[] = []
  handler: RequestListener | undefined
  upgrade: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined

  async listen(): Promise<void> {
    const context = this.authority.contextFor(hostOf('unnamed.example'))
    const tls = createHttps({
      SNICallback: (name: string, done: (error: null, found: SecureContext) => void) =>
        done(null, this.authority.contextFor(hostOf(name))),
      secureContext: context,
    } as object)
    for (const [server, port] of [
      [createHttp(), 80],
      [tls, 443],
    ] as const) {
      server.on('request', (request, response) => this.#answer(request, response))
      server.on('upgrade', (request, socket, head) => this.upgrade?.(request, socket, head))
      this.#servers.push(server as Server)
      await new Promise<void>((ready) => server.listen(port, this.address, ready))
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.handler !== undefined) {
      this.handler(request, response)
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      this.requests.push({
        method,
        url,
        host: headers.host ?? '',
        headers,
        body: Buffer.concat(chunks).toString(),
      })
      response.setHeader('content-type', 'text/plain')
      response.end(`hello from ${headers.host}${url}`)
    })
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.closeAllConnections()
    await Promise.all(this.#servers.map((server) => new Promise((done) => server.close(done))))
  }
}

export interface Said {
  readonly out: string
  readonly err: string
  readonly code: number | null
}

/** One branch's network with a namespace that programs can be run in. */
export class Rig {
  readonly network: BranchNetwork
  readonly events: PuzzledEvent[]
  readonly outside: Outside
  readonly netns: number
  readonly directory: string

  private constructor(
    network: BranchNetwork,
    events: PuzzledEvent[],
    outside: Outside,
    netns: number,
    directory: string,
  ) {
    this.network = network
    this.events = events
    this.outside = outside
    this.netns = netns
    this.directory = directory
  }

  static async open(profile: NetworkProfile, more: Partial<NetworkOptions> = {}): Promise<Rig> {
    const outside = new Outside()
    await outside.listen()
    const directory = mkdtempSync(join(tmpdir(), 'puzzled-net-'))
    const { fd } = prepareNetns()
    const events: PuzzledEvent[] = []
    const address = parseAddress(outside.address)
    const network = await openNetwork({
      branch: 'testbranch',
      network: { ...profile, rules: profile.rules.map((one) => ({ addresses: ['127.88.0.0/16'], ...one })) },
      directory,
      netns: fd,
      onEvent: (event) => events.push(event),
      lookup: async () => ({ addresses: address === undefined ? [] : [address], ttlSeconds: 60 }),
      authorities: [outside.authority.certificate],
      ...more,
    })
    return new Rig(network, events, outside, fd, directory)
  }

  /** Runs a program in the namespace, with the branch's view of `/etc` and, unless told otherwise, its variables. */
  run(
    argv: readonly string[],
    options: { env?: Record<string, string>; bare?: boolean; input?: string; cwd?: string } = {},
  ): Promise<Said> {
    const binds = this.network.files
      .map(({ path, bytes }, at) => {
        const source = join(this.directory, `view-${at}`)
        writeFileSync(source, bytes)
        return `mount --bind ${source} $(readlink -f ${path})`
      })
      .join(' && ')
    const script = `mount --make-rprivate / && ${binds === '' ? 'true' : binds} && exec "$@"`
    const { HTTP_PROXY: _, ...base } = process.env
    const variables = options.bare === true ? { PATH: base.PATH } : { ...base, ...this.network.environment }
    const child = spawn(
      'nsenter',
      ['--net=/proc/self/fd/3', 'unshare', '-m', 'sh', '-c', script, 'sh', ...argv],
      {
        stdio: ['pipe', 'pipe', 'pipe', this.netns],
        env: { ...variables, HOME: this.directory, ...options.env },
        cwd: options.cwd ?? this.directory,
      },
    )
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => err.push(chunk))
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(options.input ?? '')
    return new Promise((done) =>
      child.once('close', (code) =>
        done({ out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString(), code }),
      ),
    )
  }

  async close(): Promise<void> {
    await this.network.close()
    await this.outside.close()
    closeSync(this.netns)
    rmSync(this.directory, { recursive: true })
  }
}
