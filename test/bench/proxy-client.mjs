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
      answer.once('end', () =>
        answer.statusCode < 300 ? done() : failed(new Error(`status ${answer.statusCode}`)),
      )
    })
    made.once('error', failed)
    made.end(payload)
  })

const proxied = { host: '127.0.0.1', port: 3128, agent: plain, headers: { host: NAME } }
const modes = {
  direct: () =>
    request(http.request, { host: direct, port: 80, path: '/', agent: plain, headers: { host: NAME } }),
  forward: () => request(http.request, { ...proxied, path: `http://${NAME}/` }),
  http1: () =>
    request(https.request, { host: ANYWHERE, port: 443, path: '/', agent: secure, headers: { host: NAME } }),
  http2: () =>
    new Promise((done, failed) => {
      const stream = session.request({ ':path': '/', ':authority': NAME })
      stream.resume()
      stream.once('end', done)
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
  const { mode, count, concurrency } = JSON.parse(line)
  let left = count
  const worker = async () => {
    while (left-- > 0) await modes[mode]()
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  process.stdout.write('done\n')
}
