import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { parseAddress } from '../../daemon/network/address.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { SMUGGLING } from '../fixtures/smuggling.ts'
import { Rig } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'
import { Capture } from './capture.ts'

const it = needs(root, program('python3'))

/** Keeps every byte of every connection; answers each request that a strict reader sees. */
class RawRecorder {
  readonly address = `127.89.${randomInt(1, 255)}.${randomInt(1, 255)}`
  readonly connections: Buffer[] = []
  readonly #server: Server

  constructor() {
    this.#server = createServer((socket) => {
      const at = this.connections.push(Buffer.alloc(0)) - 1
      let answered = 0
      socket.on('data', (chunk) => {
        this.connections[at] = Buffer.concat([this.connections[at] ?? Buffer.alloc(0), chunk as Buffer])
        for (
          const whole = strictRequests(this.connections[at] ?? Buffer.alloc(0)).requests.length;
          answered < whole;
          answered++
        )
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
      socket.on('error', () => socket.destroy())
    })
  }

  async listen(): Promise<void> {
    await new Promise<void>((ready) => this.#server.listen(80, this.address, ready))
  }

  async close(): Promise<void> {
    await new Promise((done) => this.#server.close(done))
  }
}

interface Strict {
  readonly requests: { line: string; headers: Map<string, string>; body: string }[]
  readonly rest: Buffer
}

/** Reads what arrived with a parser that shares nothing with the proxy's. */
function strictRequests(bytes: Buffer): Strict {
  const requests: Strict['requests'] = []
  let rest = bytes
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return { requests, rest }
    const [line = '', ...fields] = rest.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(
      fields.map((field) => [
        field.slice(0, field.indexOf(':')).toLowerCase(),
        field.slice(field.indexOf(':') + 1).trim(),
      ]),
    )
    expect(headers.size, 'a header twice').toBe(fields.length)
    let at = end + 4
    let body = ''
    if (headers.get('transfer-encoding') === 'chunked') {
      for (let size = -1; size !== 0; ) {
        const lineEnd = rest.indexOf('\r\n', at)
        if (lineEnd < 0) return { requests, rest }
        size = Number.parseInt(rest.toString('latin1', at, lineEnd), 16)
        if (rest.length < lineEnd + 2 + size + 2) return { requests, rest }
        body += rest.toString('latin1', lineEnd + 2, lineEnd + 2 + size)
        at = lineEnd + 2 + size + 2
      }
    } else {
      const length = Number(headers.get('content-length') ?? 0)
      if (rest.length < at + length) return { requests, rest }
      body = rest.toString('latin1', at, at + length)
      at += length
    }
    requests.push({ line, headers, body })
    rest = rest.subarray(at)
  }
}

/** Sends each case on a connection of its own and prints what came back, one JSON line each. */
const CLIENT = `
import sys, json, socket, threading
out = {}
def one(n, data):
    got = b''
    try:
        s = socket.create_connection(('127.0.0.1', 3128), 5)
        s.settimeout(5)
        s.sendall(data)
        while True:
            part = s.recv(65536)
            if not part: break
            got += part
    except OSError: pass
    out[n] = got.decode('latin1')
cases = json.load(sys.stdin)
for start in range(0, len(cases), 32):
    group = [threading.Thread(target=one, args=(n, bytes.fromhex(cases[n]))) for n in range(start, min(start + 32, len(cases)))]
    [t.start() for t in group]; [t.join() for t in group]
print(json.dumps([out[n] for n in range(len(cases))]))
`

let recorder: RawRecorder
let rig: Rig
beforeEach(async () => {
  recorder = new RawRecorder()
  await recorder.listen()
  const address = parseAddress(recorder.address)
  rig = await Rig.open(
    network([
      rule('never', { hosts: ['a.example.com'], ports: [80], paths: ['/smuggled'], class: 'deny' }),
      rule('live', { hosts: ['a.example.com'], ports: [80], class: 'live', addresses: ['127.89.0.0/16'] }),
    ]),
    { lookup: async () => ({ addresses: address === undefined ? [] : [address], ttlSeconds: 60 }) },
  )
})
afterEach(async () => {
  await rig.close()
  await recorder.close()
})

async function send(cases: readonly Buffer[]): Promise<readonly string[]> {
  const input = JSON.stringify(cases.map((bytes) => bytes.toString('hex')))
  const said = await rig.run(['python3', '-c', CLIENT], { input })
  expect(said.err).toBe('')
  return JSON.parse(said.out) as string[]
}

describe('S37 request smuggling', () => {
  it('has at least 100 cases, and none brings a second request to the other end', async () => {
    expect(SMUGGLING.length).toBeGreaterThanOrEqual(100)
    // What went over the wire, whatever the recorder made of it; as the gate writes requests, which no body here does.
    const [inner, any] = ['GET /smuggled HTTP/1.1\r\nhost:', ' HTTP/1.1\r\nhost: a.example.com\r\n']
    const capture = await Capture.open({ texts: [inner, any] })
    const answers = await send(SMUGGLING.map((one) => one.bytes))
    const frames = await capture.seen()
    await capture.close()
    expect(frames[inner]).toBe(0)
    expect(frames[any]).toBeGreaterThan(0)
    const arrived = new Map<string, number>()
    for (const bytes of recorder.connections) {
      const { requests, rest } = strictRequests(bytes)
      // A body that turned out malformed was cut off with its connection: an unfinished request, which nobody may act on.
      const cut =
        rest.length === 0 ||
        /^POST \/case-\d+ HTTP\/1\.1\r\nhost: a\.example\.com\r\n[\s\S]*transfer-encoding: chunked/.test(
          rest.toString('latin1'),
        )
      expect(cut, `bytes behind the last request: ${rest.toString('latin1')}`).toBe(true)
      expect(rest.toString('latin1')).not.toMatch(/\r\n0\r\n|smuggled/)
      for (const { line, headers } of requests) {
        expect(line).toMatch(/^(GET|POST|HEAD) \/case-\d+ HTTP\/1\.1$/)
        expect(headers.get('host')).toBe('a.example.com')
        expect([headers.has('content-length') && headers.has('transfer-encoding'), line]).toEqual([
          false,
          line,
        ])
        arrived.set(line, (arrived.get(line) ?? 0) + 1)
      }
    }
    for (const [line, times] of arrived) expect(times, line).toBe(1)
    // Every case got an answer, or its connection was closed; none was left hanging in a wrong state.
    for (const [at, answer] of answers.entries()) {
      const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map((match) => match[1])
      expect(statuses, SMUGGLING[at]?.name).not.toContain('500')
    }
  })

  it('lets the plain forms through, so that the cases above can fail', async () => {
    const plain = [
      'POST http://a.example.com/case-1 HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 5\r\n\r\nhello',
      'POST http://a.example.com/case-2 HTTP/1.1\r\nHost: a.example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      'GET http://a.example.com/case-3 HTTP/1.1\r\nHost: a.example.com\r\n\r\n',
      'GET http://a.example.com/smuggled HTTP/1.1\r\nHost: a.example.com\r\n\r\n',
    ]
    const answers = await send(plain.map((text) => Buffer.from(text)))
    expect(answers.map((answer) => answer.slice(9, 12))).toEqual(['200', '200', '200', '403'])
    const requests = recorder.connections.flatMap((bytes) => strictRequests(bytes).requests)
    const bodies = requests.map(({ line, body }) => `${line.split(' ')[1]} ${body}`).sort()
    expect(bodies).toEqual(['/case-1 hello', '/case-2 hello', '/case-3 '])
  })
})
