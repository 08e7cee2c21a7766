import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { closeSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { packageRoot } from '../../../daemon/lib/assets.ts'
import { parseAddress } from '../../../daemon/network/address.ts'
import { type BranchNetwork, openNetwork } from '../../../daemon/network/gate-network.ts'
import { prepareNetns } from '../../../daemon/network/namespace.ts'
import { network, rule } from '../../fixtures/network-rules.ts'
import type { BenchArea, BenchCase, Notes } from '../harness.ts'
import { quantile } from '../statistics.ts'
import { type Peer, startPeers } from './proxy-peers.ts'

const NAME = 'bench.example.com'

/**
 * The other end in a process of its own, so that it does not take the gate's time. No HTTP library: what it costs, every
 * candidate pays, and the less it is, the more of what is measured are the proxies.
 */
const SERVER = `
const [address, key, cert] = process.argv.slice(1)
const answer = Buffer.from('HTTP/1.1 200 OK\\r\\ncontent-type: text/plain\\r\\ncontent-length: 1024\\r\\n\\r\\n' + 'x'.repeat(1024))
const serve = (socket) => {
  let rest = ''
  socket.on('data', (chunk) => {
    rest += chunk.toString('latin1')
    for (let end = rest.indexOf('\\r\\n\\r\\n'); end >= 0; end = rest.indexOf('\\r\\n\\r\\n')) {
      rest = rest.slice(end + 4)
      socket.write(answer)
    }
  })
  socket.on('error', () => socket.destroy())
}
require('net').createServer({ noDelay: true }, serve).listen(80, address, () =>
  require('tls').createServer({ key, cert, noDelay: true }, serve).listen(443, address, () => console.log('ready')))
`

interface Rig {
  readonly inside: Load
  readonly outside: Load
  readonly gate: BranchNetwork
  readonly directory: string
  readonly peers: readonly Peer[]
}

interface Done {
  readonly times: readonly number[]
  readonly failures: number
}

/** A client process that is told what to send. */
class Load {
  readonly #child: ChildProcess
  readonly #waiting: ((done: Done) => void)[] = []

  constructor(child: ChildProcess) {
    this.#child = child
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on('line', (line) => this.#waiting.shift()?.(JSON.parse(line)))
  }

  /** What each request took, in milliseconds, and how many were not answered well. */
  run(mode: string, count: number, concurrency: number, port?: number): Promise<Done> {
    return new Promise((done) => {
      this.#waiting.push(done)
      this.#child.stdin?.write(`${JSON.stringify({ mode, count, concurrency, port })}\n`)
    })
  }
}

async function open(notes: Notes): Promise<Rig> {
  const directory = mkdtempSync(join(tmpdir(), 'puzzled-bench-'))
  const [key, cert] = [join(directory, 'key'), join(directory, 'cert')]
  const names = ['-subj', `/CN=${NAME}`, '-addext', `subjectAltName=DNS:${NAME}`]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...names], {
    stdio: 'ignore',
  })
  const address = `127.90.${randomInt(1, 255)}.${randomInt(1, 255)}`
  const [keyText, certText] = [readFileSync(key, 'utf8'), readFileSync(cert, 'utf8')]
  const server = startedBy(
    spawn(process.execPath, ['-e', SERVER, '--', address, keyText, certText], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  await new Promise((ready) => server.stdout?.once('data', ready))
  const parsed = parseAddress(address)
  const { fd } = prepareNetns()
  const wide = { hosts: [NAME], ports: [80, 443], addresses: ['127.90.0.0/16'] }
  const gate = await openNetwork({
    branch: 'bench',
    network: network([rule('write', { ...wide, methods: ['POST'], class: 'queue' }), rule('read', wide)]),
    netns: fd,
    directory,
    onEvent: () => undefined,
    lookup: async () => ({ addresses: parsed === undefined ? [] : [parsed], ttlSeconds: 3600 }),
    authorities: [certText],
    queueLimits: { maxRequests: 1_000_000, maxBytes: 1e12, maxBodyBytes: 1e6, maxHeadBytes: 1e12 },
  })
  const client = join(packageRoot(), 'test/bench/proxy-client.mjs')
  const bundle = Buffer.from(gate.files[0]?.bytes ?? []).toString()
  const authority = bundle.slice(bundle.lastIndexOf('-----BEGIN CERTIFICATE-----'))
  const inside = spawn('nsenter', ['--net=/proc/self/fd/3', process.execPath, client, '', authority], {
    stdio: ['pipe', 'pipe', 'inherit', fd],
  })
  const outside = spawn(process.execPath, [client, address, ''], { stdio: ['pipe', 'pipe', 'inherit'] })
  const peers = await startPeers(directory, startedBy, notes)
  return {
    inside: new Load(startedBy(inside)),
    outside: new Load(startedBy(outside)),
    gate,
    directory,
    peers,
  }
}

const children: ChildProcess[] = []
let opened: Rig | undefined

function startedBy(child: ChildProcess): ChildProcess {
  children.push(child)
  return child
}

async function close(): Promise<void> {
  for (const child of children) child.kill('SIGKILL')
  await opened?.gate.close()
  if (opened === undefined) return
  closeSync(opened.gate.namespace)
  rmSync(opened.directory, { recursive: true })
}

const REQUESTS = 256
/** Times of single requests, by case and candidate. */
const single = new Map<string, { times: number[]; failures: number }>()

type Row = [name: string, from: Load, mode: string, port?: number]

function candidatesOf(rig: Rig, concurrency: number): BenchCase['candidates'] {
  const { inside, outside, peers } = rig
  const load =
    (name: string, from: Load, mode: string, port?: number): (() => Promise<void>) =>
    async () => {
      const done = await from.run(mode, REQUESTS, concurrency, port)
      const key = `${concurrency} at a time: ${name}`
      const known = single.get(key) ?? { times: [], failures: 0 }
      known.times.push(...done.times)
      known.failures += done.failures
      single.set(key, known)
    }
  const named: Row[] = [
    ['direct, no proxy', outside, 'direct'],
    ['puzzled, forwarded', inside, 'forward'],
    ...peers.map(({ name, port }): Row => [`${name}, forwarded`, outside, 'via', port]),
    ['puzzled, TLS ended, HTTP/1.1', inside, 'http1'],
    ...peers.map(({ name, port, reads }): Row => {
      const what = reads ? 'TLS ended' : 'TLS passed unread'
      return [`${name}, ${what}, HTTP/1.1`, outside, 'viaTls', port]
    }),
    ['puzzled, TLS ended, HTTP/2', inside, 'http2'],
    ['puzzled, 2 KiB write queued durably', inside, 'queue'],
  ]
  return Object.fromEntries(named.map(([name, from, mode, port]) => [name, load(name, from, mode, port)]))
}

/** The harness times batches; what one request takes, and how many there are in a second, follows here. */
function noteSingle(notes: Notes): void {
  for (const [key, { times, failures }] of single) {
    const concurrency = Number.parseInt(key, 10)
    const rate = (1000 * concurrency * times.length) / times.reduce((sum, one) => sum + one, 0)
    notes.fact(`${key}: rate`, rate, 'requests/s')
    notes.fact(`${key}: one request p50`, quantile(times, 0.5), 'ms')
    notes.fact(`${key}: one request p99`, quantile(times, 0.99), 'ms')
    if (failures > 0) notes.fact(`${key}: failed`, failures, 'requests')
  }
}

export const area: BenchArea = {
  name: 'proxy',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: async (notes) => {
    const rig = await open(notes)
    opened = rig
    return [1, 32, 256].map(
      (concurrency): BenchCase => ({
        name: `${REQUESTS} requests, ${concurrency} at a time`,
        baseline: 'direct, no proxy',
        goal: 'rate ≥ 4 × sandbox-runtime, ≥ 3 × mitmproxy',
        rounds: 12,
        // Until the compilers of those that have one are through: a gate serves more than its first thousand requests.
        warmUp: 10,
        candidates: candidatesOf(rig, concurrency),
      }),
    )
  },
  close: async (notes) => {
    noteSingle(notes)
    await close()
  },
}
