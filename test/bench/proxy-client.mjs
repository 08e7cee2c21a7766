// Load for the proxy benchmark: reads one JSON job per line, sends its requests, answers with one line per job. HTTP/1.1 is written
// and read here by hand, because a client that costs more than the proxy would be what is measured.
import http2 from 'node:http2'
import net from 'node:net'
import { createInterface } from 'node:readline'
import tls from 'node:tls'

const NAME = 'bench.example.com'
const [direct, ca] = process.argv.slice(2)
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

/** How long the answer at the beginning of `bytes` is, whether it was good, and whether its connection ends; or undefined. */
function answerIn(bytes, ended) {
  const head = bytes.indexOf('\r\n\r\n')
  if (head < 0) return undefined
  const text = bytes.toString('latin1', 0, head + 2)
  const from = head + 4
  const good = text.charAt(9) === '2'
  const close = /\r\nconnection: close\r\n/i.test(text)
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1]
  if (length !== undefined)
    return bytes.length < from + Number(length) ? undefined : { size: from + Number(length), good, close }
  if (!/\r\ntransfer-encoding: chunked/i.test(text))
    return ended ? { size: bytes.length, good, close: true } : undefined
  for (let at = from; ; ) {
    const line = bytes.indexOf('\r\n', at)
    if (line < 0) return undefined
    const chunk = Number.parseInt(bytes.toString('latin1', at, line), 16)
    at = line + 2 + chunk + 2
    if (bytes.length < at) return undefined
    if (chunk === 0) return { size: at, good, close }
  }
}

/** One connection that sends one request after the other. */
class Connection {
  #socket
  #bytes = Buffer.alloc(0)
  #waiting

  constructor(socket) {
    this.#socket = socket
    socket.on('data', (chunk) => {
      this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
      this.#read(false)
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      this.#read(true)
      this.#answer(false)
    })
  }

  get usable() {
    return !this.#socket.destroyed && this.#socket.writable
  }

  #read(ended) {
    const answer = answerIn(this.#bytes, ended)
    if (answer === undefined) return
    this.#bytes = this.#bytes.subarray(answer.size)
    if (answer.close) this.#socket.destroy()
    this.#answer(answer.good)
  }

  #answer(good) {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.(good)
  }

  send(bytes) {
    return new Promise((done) => {
      this.#waiting = done
      this.#socket.write(bytes)
    })
  }
}

const opened = (connect, event) =>
  new Promise((done, failed) => {
    const socket = connect()
    socket.setNoDelay(true)
    socket.once('error', failed)
    socket.once(event, () => done(socket))
  })
const plain = (host, port) => () => opened(() => net.connect({ host, port }), 'connect')
const secure = (given) => opened(() => tls.connect(given), 'secureConnect')

/** Through CONNECT. Whose certificate it is does not matter here. */
async function tunnel(port) {
  const socket = await plain('127.0.0.1', port)()
  socket.write(`CONNECT ${direct}:443 HTTP/1.1\r\nhost: ${direct}:443\r\n\r\n`)
  const [head] = await new Promise((done, failed) => {
    socket.once('data', (chunk) => done([chunk.toString('latin1')]))
    socket.once('close', () => failed(new Error('refused')))
  })
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(head)
  return await secure({ socket, servername: NAME, rejectUnauthorized: false })
}

const asked = (line, host, more = '') => Buffer.from(`${line} HTTP/1.1\r\nhost: ${host}\r\n${more}\r\n`)
const proxied = { connect: () => plain('127.0.0.1', 3128)() }
const modes = {
  via: (port) => ({ connect: plain('127.0.0.1', port), bytes: asked(`GET http://${direct}/`, direct) }),
  viaTls: (port) => ({ connect: () => tunnel(port), bytes: asked('GET /', NAME) }),
  direct: () => ({ connect: plain(direct, 80), bytes: asked('GET /', NAME) }),
  forward: () => ({ ...proxied, bytes: asked(`GET http://${NAME}/`, NAME) }),
  http1: () => ({
    connect: () => secure({ host: ANYWHERE, port: 443, servername: NAME, ca, ALPNProtocols: ['http/1.1'] }),
    bytes: asked('GET /', NAME),
  }),
  queue: () => ({
    ...proxied,
    bytes: Buffer.concat([asked(`POST http://${NAME}/`, NAME, `content-length: ${body.length}\r\n`), body]),
  }),
}

const overHttp2 = () =>
  new Promise((done, failed) => {
    const stream = session.request({ ':path': '/', ':authority': NAME })
    stream.resume()
    stream.once('end', () => done(true))
    stream.once('error', failed)
    stream.end()
  })

/** Connections of one mode that nobody uses now: the next round goes on with them, like a client that keeps them. */
const idle = new Map()

async function worker(mode, port, take, note) {
  const { connect, bytes } = mode === 'http2' ? {} : modes[mode](port)
  const key = `${mode} ${port}`
  const kept = idle.get(key) ?? []
  idle.set(key, kept)
  let connection = kept.pop()
  while (take()) {
    const started = performance.now()
    let good = false
    // A proxy that gives up under load is compared by what it did answer.
    try {
      if (mode === 'http2') good = await overHttp2()
      else {
        if (!connection?.usable) connection = new Connection(await connect())
        good = await connection.send(bytes)
      }
    } catch {
      good = false
    }
    note(performance.now() - started, good)
  }
  if (connection?.usable) kept.push(connection)
}

for await (const line of createInterface({ input: process.stdin })) {
  const { mode, count, concurrency, port } = JSON.parse(line)
  let left = count
  const times = []
  let failures = 0
  const note = (time, good) => {
    times.push(time)
    if (!good) failures++
  }
  await Promise.all(Array.from({ length: concurrency }, () => worker(mode, port, () => left-- > 0, note)))
  process.stdout.write(`${JSON.stringify({ times, failures })}\n`)
}
