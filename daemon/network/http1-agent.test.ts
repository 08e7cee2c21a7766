import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { AgentRequest, AgentResponse } from './agent-request.ts'
import type { NetworkDenied } from './denial.ts'
import { type Arrival, markArrival } from './gate.ts'
import { Http1Agent } from './http1-agent.ts'
import { LIMITS } from './limits.ts'

type Serve = (from: AgentRequest, to: AgentResponse) => void

let server: Server
let agents: Http1Agent[]
let refused: NetworkDenied[]
let serve: Serve
let arrived: Arrival | undefined
const clients: Socket[] = []
const accepted: Socket[] = []

beforeEach(async () => {
  agents = []
  refused = []
  arrived = undefined
  serve = (from, to) => say(to, `${from.method} ${from.target}`)
  server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    accepted.push(socket)
    if (arrived !== undefined) markArrival(socket, arrived)
    agents.push(
      new Http1Agent(socket, LIMITS, {
        serve: (from, to) => serve(from, to),
        connect: (asked, taken, rest) => void taken.end(`tunnel to ${asked.target} with ${String(rest)}`),
        upgrade: (asked, taken) => void taken.end(`upgrade of ${asked.target}`),
        malformed: (denied, taken) => {
          refused.push(denied)
          taken.end(`refused ${denied.status}`)
        },
        closed: () => undefined,
      }),
    )
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
})
afterEach(async () => {
  // One that is paused would not notice that its other end is gone.
  for (const socket of [...clients.splice(0), ...accepted.splice(0)]) socket.destroy()
  await new Promise((done) => server.close(done))
})

function say(to: AgentResponse, text: string): void {
  to.head(200, [['content-length', String(text.length)]])
  to.write(Buffer.from(text))
  to.end()
}

interface Client {
  readonly socket: Socket
  said(): string
  /** Resolves once what was said has this in it. */
  hears(what: RegExp): Promise<string>
  readonly closed: Promise<string>
}

function client(): Client {
  const { port } = server.address() as { port: number }
  const socket = connect(port, '127.0.0.1')
  clients.push(socket)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => undefined)
  const closed = new Promise<string>((done) => socket.once('close', () => done(text)))
  const hears = async (what: RegExp): Promise<string> => {
    while (!what.test(text)) await new Promise((soon) => setTimeout(soon, 5))
    return text
  }
  return { socket, said: () => text, hears, closed }
}

const HOST = 'host: a\r\n'
const statuses = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code ?? '')
const soon = (): Promise<void> => new Promise((done) => setTimeout(done, 30))

it('answers requests that come together one after the other, in their order', async () => {
  const waiting: (() => void)[] = []
  serve = (from, to) => void waiting.push(() => say(to, from.target))
  const { socket, hears } = client()
  socket.write(
    `GET /r1 HTTP/1.1\r\n${HOST}\r\nGET /r2 HTTP/1.1\r\n${HOST}\r\nGET /r3 HTTP/1.1\r\n${HOST}\r\n`,
  )
  for (let n = 1; n <= 3; n++) {
    await expect.poll(() => waiting.length).toBe(n)
    waiting[n - 1]?.()
  }
  expect((await hears(/r3$/)).match(/r\d/g)).toEqual(['r1', 'r2', 'r3'])
})

it('hands a body over whole where it came with its head, and as a stream where it did not', async () => {
  const bodies: string[] = []
  serve = async (from, to) => {
    let text = from.whole === undefined ? 'streamed ' : 'whole '
    for await (const chunk of from.body ?? [from.whole ?? Buffer.alloc(0)]) text += String(chunk)
    bodies.push(text)
    say(to, 'ok')
  }
  const { socket, hears } = client()
  socket.write(`POST / HTTP/1.1\r\n${HOST}content-length: 5\r\n\r\nhello`)
  await hears(/ok$/)
  socket.write(`POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n`)
  await soon()
  socket.write('2\r\nlo\r\n0\r\n\r\n')
  await hears(/ok[\s\S]*ok$/)
  expect(bodies).toEqual(['whole hello', 'streamed hello'])
})

it('drops what nobody wanted of a body, and goes on with the next request', async () => {
  const { socket, hears } = client()
  socket.write(`POST /early HTTP/1.1\r\n${HOST}content-length: 200000\r\n\r\n`)
  await hears(/early/)
  socket.write(Buffer.alloc(200_000, 'GET /inner HTTP/1.1\r\n\r\n'))
  socket.write(`GET /after HTTP/1.1\r\n${HOST}\r\n`)
  expect(await hears(/after/)).not.toContain('inner')
})

it('holds a body in chunks of one byte in as many pieces as it was read in', async () => {
  const count = 20_000
  let [pieces, bytes] = [0, 0]
  serve = (from, to) => {
    from.body?.on('data', (piece: Buffer) => {
      pieces++
      bytes += piece.length
    })
    from.body?.on('end', () => say(to, 'ok'))
  }
  const { socket, hears } = client()
  socket.write(`PUT / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n`)
  await soon()
  socket.write(`${'1\r\nx\r\n'.repeat(count - 1)}0\r\n\r\n`)
  await hears(/ok$/)
  expect(bytes).toBe(count)
  expect(pieces).toBeLessThan(count / 10)
})

it('lets no more in than is read', async () => {
  let body: AgentRequest['body']
  serve = (from) => {
    body = from.body
  }
  const { socket } = client()
  const size = 64 * 1024 * 1024
  socket.write(`PUT / HTTP/1.1\r\n${HOST}content-length: ${size}\r\n\r\n`)
  await soon()
  for (let n = 0; n < 64; n++) socket.write(Buffer.alloc(size / 64))
  await soon()
  expect(body?.readableLength).toBeLessThan(1024 * 1024)
  expect(socket.writableLength).toBeGreaterThan(16 * 1024 * 1024)
})

it('answers no faster than is read, and everything once it is', async () => {
  const [count, size] = [200, 500_000]
  let served = 0
  serve = (_from, to) => {
    served++
    say(to, 'x'.repeat(size))
  }
  const { socket } = client()
  socket.pause()
  socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(count))
  // What the kernel holds, which differs from machine to machine, and a few answers.
  for (let before = -1; before !== served; await soon()) before = served
  expect(accepted[0]?.writableLength).toBeLessThan(4 * size)
  expect(served).toBeLessThan(count)
  let read = 0
  socket.on('data', (chunk) => {
    read += chunk.length
  })
  socket.resume()
  while (read < count * size) await soon()
  expect(served).toBe(count)
})

it('says how long an answer is in the way that its reader knows', async () => {
  serve = (_from, to) => {
    to.head(200, [['x', 'y']])
    to.write(Buffer.from('body'))
    to.end([['x-sum', '1']])
  }
  const one = client()
  one.socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`)
  expect(await one.hears(/\r\n0\r\n/)).toMatch(
    /transfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nx-sum: 1\r\n\r\n$/,
  )
  one.socket.write(`HEAD / HTTP/1.1\r\n${HOST}\r\n`)
  expect(await one.hears(/x: y[\s\S]*x: y[\s\S]*\r\n\r\n$/)).not.toMatch(/x-sum: 1\r\n\r\n[\s\S]*body/)
  const old = client()
  old.socket.write(`GET / HTTP/1.0\r\n${HOST}\r\n`)
  expect(await old.closed).toMatch(/connection: close\r\n\r\nbody$/)
})

it('refuses to write a header that would be two', async () => {
  let thrown: unknown
  serve = (_from, to) => {
    try {
      to.head(200, [['x', 'a\r\nset-cookie: b']])
    } catch (error) {
      thrown = error
    }
    to.head(502, [['content-length', '0']])
    to.end()
  }
  const { socket, hears } = client()
  socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`)
  expect(await hears(/502/)).not.toContain('set-cookie')
  expect(thrown).toBeInstanceOf(Error)
})

it('reads nothing behind what is no request', async () => {
  const { socket, closed } = client()
  socket.write(`GET /1 HTTP/1.1\r\n${HOST}\r\nGET  /2 HTTP/1.1\r\n${HOST}\r\nGET /3 HTTP/1.1\r\n${HOST}\r\n`)
  const text = await closed
  expect([statuses(text), text.includes('refused 400'), text.includes('/3')]).toEqual([['200'], true, false])
})

it('breaks a body that turns out malformed, with the reason', async () => {
  const broken = new Promise<unknown>((done) => {
    serve = (from) => void from.body?.resume().once('error', done)
  })
  const { socket } = client()
  socket.write(`PUT / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`)
  await soon()
  socket.write('5\r\nhelloX')
  expect(await broken).toMatchObject({ status: 400, rule: 'bad-framing' })
})

it('tells an answer under way that the agent went away, and nobody else', async () => {
  const gone: string[] = []
  serve = (from, to) => {
    to.onGone(() => void gone.push(from.target))
    if (from.target === '/done') say(to, 'done')
  }
  const { socket, hears, closed } = client()
  socket.write(`GET /done HTTP/1.1\r\n${HOST}\r\n`)
  await hears(/done$/)
  socket.write(`GET /waits HTTP/1.1\r\n${HOST}\r\n`)
  await soon()
  socket.end()
  await closed
  expect(gone).toEqual(['/waits'])
})

it.each([
  ['a head', `GET / HTTP/1.1\r\nx: `, LIMITS.headersMs],
  ['a body', `PUT / HTTP/1.1\r\n${HOST}content-length: 9\r\n\r\nabc`, LIMITS.requestMs],
])('%s that comes too slowly ends with a status', async (what, text, patience) => {
  serve = (from, to) =>
    void from.body?.resume().once('error', (error) => {
      to.head((error as NetworkDenied).status, [['content-length', '0']])
      to.end()
    })
  const { socket, closed } = client()
  socket.write(text)
  // What has not arrived yet would be a connection that rests.
  while ((accepted[0]?.bytesRead ?? 0) < text.length) await soon()
  for (const agent of agents) agent.tick(performance.now() + patience - 1_000)
  await soon()
  expect(socket.destroyed).toBe(false)
  for (const agent of agents) agent.tick(performance.now() + patience + 1_000)
  expect(await closed).toContain('408')
  expect(refused.length).toBe(what === 'a head' ? 1 : 0)
})

it('closes a connection that rests too long, without a word', async () => {
  const { socket, hears, closed } = client()
  socket.write(`GET /1 HTTP/1.1\r\n${HOST}\r\n`)
  const before = await hears(/1$/)
  for (const agent of agents) agent.tick(performance.now() + LIMITS.keepAliveMs + 1_000)
  expect(await closed).toBe(before)
})

it('gives the connection away for a tunnel and for a WebSocket', async () => {
  const tunnel = client()
  tunnel.socket.write('CONNECT b:443 HTTP/1.1\r\n\r\nearly')
  expect(await tunnel.closed).toBe('tunnel to b:443 with early')
  const upgrade = client()
  upgrade.socket.write(`GET /ws HTTP/1.1\r\n${HOST}connection: upgrade\r\nupgrade: websocket\r\n\r\n`)
  expect(await upgrade.closed).toBe('upgrade of /ws')
  const posted = client()
  posted.socket.write(`POST /ws HTTP/1.1\r\n${HOST}connection: upgrade\r\nupgrade: websocket\r\n\r\n`)
  expect(await posted.closed).toBe('refused 400')
})

it.each(['connect', 'transparent'] as const)(
  'opens no tunnel in a connection that came by %s',
  async (via) => {
    arrived = { via, port: 80, host: undefined, tls: false, sni: undefined }
    const { socket, closed } = client()
    socket.write('CONNECT b:80 HTTP/1.1\r\n\r\nCONNECT c:80 HTTP/1.1\r\n\r\n')
    expect([await closed, refused.map((one) => one.rule)]).toEqual(['refused 400', ['nested-connect']])
  },
)
