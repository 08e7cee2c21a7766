// Load for the proxy benchmark: reads one JSON job per line, sends its requests, answers with one line per job.
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { createInterface } from 'node:readline'
import tls from 'node:tls'

const NAME = 'bench.example.com'
const [direct, ca] = process.argv.slice(2)
const options = { keepAlive: true, maxSockets: 256 }
const plain = new http.Agent(options)
const secure = new https.Agent({ ...options, ca, servername: NAME })
// Any address arrives at the gate; the name in the handshake says where it goes.
const ANYWHERE = '198.18.0.9'
const session = direct === '' ? connectHttp2() : undefined
const body = Buffer.alloc(2048, 'x')

function connectHttp2() {
  const createConnection = () =>
    tls.connect({ host: ANYWHERE, port: 443, servername: NAME, ca, ALPNProtocols: ['h2'] })
  const made = http2.connect(`https://${NAME}`, { createConnection })
  made.on('error', () => made.destroy())
  return made
}

const request = (send, given, payload) =>
  new Promise((done, failed) => {
    const made = send(given, (answer) => {
      answer.resume()
      answer.once('end', () => done(answer.statusCode < 300))
    })
    made.once('error', failed)
    made.end(payload)
  })

const proxied = { host: '127.0.0.1', port: 3128, agent: plain, headers: { host: NAME } }
/** A connection through CONNECT per proxy, kept like any other. Whose certificate it is does not matter here. */
class Tunnels extends https.Agent {
  constructor(port) {
    super(options)
    this.port = port
  }
  createConnection(_options, done) {
    const asked = http.request({
      host: '127.0.0.1',
      port: this.port,
      method: 'CONNECT',
      path: `${direct}:443`,
    })
    asked.once('connect', (_answer, socket) =>
      done(null, tls.connect({ socket, servername: NAME, rejectUnauthorized: false })),
    )
    asked.once('error', done)
    asked.end()
  }
}
const tunnels = new Map()
const tunnelsTo = (port) => {
  if (!tunnels.has(port)) tunnels.set(port, new Tunnels(port))
  return tunnels.get(port)
}

const modes = {
  via: (port) =>
    request(http.request, {
      host: '127.0.0.1',
      port,
      path: `http://${direct}/`,
      agent: plain,
      headers: { host: direct },
    }),
  viaTls: (port) =>
    request(https.request, { host: direct, path: '/', agent: tunnelsTo(port), headers: { host: NAME } }),
  direct: () =>
    request(http.request, { host: direct, port: 80, path: '/', agent: plain, headers: { host: NAME } }),
  forward: () => request(http.request, { ...proxied, path: `http://${NAME}/` }),
  http1: () =>
    request(https.request, { host: ANYWHERE, port: 443, path: '/', agent: secure, headers: { host: NAME } }),
  http2: () =>
    new Promise((done, failed) => {
      const stream = session.request({ ':path': '/', ':authority': NAME })
      stream.resume()
      stream.once('end', () => done(true))
      stream.once('error', failed)
      stream.end()
    }),
  queue: () =>
    request(
      http.request,
      {
        ...proxied,
        method: 'POST',
        path: `http://${NAME}/`,
        headers: { host: NAME, 'content-length': body.length },
      },
      body,
    ),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { mode, count, concurrency, port } = JSON.parse(line)
  let left = count
  const times = []
  let failures = 0
  const worker = async () => {
    while (left-- > 0) {
      const started = performance.now()
      // A proxy that gives up under load is compared by what it did answer.
      if (!(await modes[mode](port).catch(() => false))) failures++
      times.push(performance.now() - started)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  process.stdout.write(`${JSON.stringify({ times, failures })}\n`)
}
