import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { createServer as createTls } from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createSecure } from 'node:tls'
import { afterEach, describe, expect } from 'vitest'
import { pem, signedCertificate, unsignedCertificate } from '../../daemon/network/certificate.ts'
import type { Hostname } from '../../daemon/network/hostname.ts'
import { hostOf, network, rule } from '../fixtures/network-rules.ts'
import { needs, program, root } from '../tier/needs.ts'
import { LongestTurn } from './longest-turn.ts'
import { Rig } from './network-rig.ts'

const it = needs(root, program('curl'), program('python3'))
/** Ports of the outside that a test serves by itself. */
const RAW = 8080
const TLS = 8443
const PROFILE = network(
  [rule('live', { hosts: ['*.example.com'], ports: [80, 443, RAW, TLS], class: 'live' })],
  {
    ports: [RAW, TLS],
  },
)
const LIMITS = { responseMs: 3_000, responseIdleMs: 3_000, connectMs: 3_000 }

const rigs: Rig[] = []
const servers: Server[] = []
const sockets = new Set<Socket>()
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers.splice(0)) await new Promise((done) => server.close(done))
  for (const rig of rigs.splice(0)) await rig.close()
})

const DAY = 86_400_000
const ca = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Valid from ten days ago until so many days from now; without a host it is the authority itself. */
function issue(subject: string, days: number, host?: Hostname): string {
  const unsigned = unsignedCertificate({
    serial: Buffer.from(`01${randomBytes(8).toString('hex')}`, 'hex'),
    issuer: 'outside',
    subject,
    from: new Date(Date.now() - 10 * DAY),
    until: new Date(Date.now() + days * DAY),
    publicKey: (host === undefined ? ca : leaf).publicKey.export({ type: 'spki', format: 'der' }),
    issuerKey: ca.publicKey.export({ type: 'spki', format: 'der' }),
    ...(host === undefined ? {} : { host }),
  })
  return pem(signedCertificate(unsigned, sign('sha256', unsigned, ca.privateKey)))
}
const authority = issue('outside', 10)
const leafOf = (name: string, days: number): { key: string; cert: string } => ({
  key: leaf.privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
  cert: issue(name, days, hostOf(name)),
})

async function open(more: Parameters<typeof Rig.open>[1] = {}): Promise<Rig> {
  const rig = await Rig.open(PROFILE, { limits: LIMITS, ...more })
  rigs.push(rig)
  return rig
}

async function serve(rig: Rig, port: number, server: Server): Promise<void> {
  servers.push(server)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((ready) => server.listen(port, rig.outside.address, ready))
}

const curl = (rig: Rig, ...args: string[]) =>
  rig.run(['curl', '-sS', '--max-time', '20', '-w', '|%{http_code}', ...args])
const raw = (rig: Rig, answer: (socket: Socket) => void): Promise<void> =>
  serve(
    rig,
    RAW,
    createServer((socket) => socket.once('data', () => answer(socket))),
  )

describe('another end that', () => {
  it.each([
    ['never answers', () => undefined, 'upstream-timeout', 504],
    ['speaks no HTTP', (socket: Socket) => socket.end('SSH-2.0-x\r\n'), 'upstream-failed', 502],
    [
      'says two lengths',
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
      'upstream-failed',
      502,
    ],
    [
      'says a length and chunks',
      (socket: Socket) =>
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
      'upstream-failed',
      502,
    ],
    [
      'has headers without end',
      (socket: Socket) => socket.end(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`),
      'upstream-headers',
      502,
    ],
    [
      'changes the protocol unasked',
      (socket: Socket) =>
        socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
      'upstream-failed',
      502,
    ],
  ] as const)('%s is a status and a reason', async (_what, answer, by, status) => {
    const rig = await open()
    await raw(rig, answer)
    const said = await curl(rig, `http://a.example.com:${RAW}/`)
    expect(said.out).toMatch(new RegExp(`"rule":"${by}".*\\|${status}$`, 's'))
    expect(rig.events).toContainEqual(expect.objectContaining({ kind: 'denial', rule: by }))
    expect((await curl(rig, 'http://b.example.com/')).out).toContain('hello from')
  })

  it.each([
    ['200 OK', 'Content-Length: 0\r\n\r\n'],
    ['200 OK', 'Content-Length: 1\r\n\r\nx'],
    ['204 No Content', '\r\n'],
  ])('says twice what stands once is taken at its first word: %s %j', async (start, end) => {
    const rig = await open({ authorities: [authority] })
    const twice = 'Content-Location: /a\r\nContent-Location: /b\r\n'
    const answer = `HTTP/1.1 ${start}\r\n${twice}${end}`
    const tls = createSecure(leafOf('a.example.com', 1), (socket) =>
      socket.on('data', () => socket.write(answer)),
    )
    await serve(rig, TLS, tls)
    for (const version of ['--http2', '--http1.1']) {
      const said = await curl(rig, version, '-D-', `https://a.example.com:${TLS}/`)
      expect([said.code, said.out.match(/content-location: .*/gi)], said.err).toEqual([
        0,
        ['content-location: /a'],
      ])
      expect(said.out).toMatch(new RegExp(`\\|${start.slice(0, 3)}$`))
    }
  })

  it('stops in the middle is no whole answer', async () => {
    const rig = await open()
    await raw(rig, (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning'))
    const said = await curl(rig, `http://a.example.com:${RAW}/`)
    expect([said.code, said.out.includes('beginning')]).toEqual([18, true])
  })

  it('says more than it promised gives nothing of it to the next request', async () => {
    const rig = await open()
    let connections = 0
    await raw(rig, (socket) => {
      connections++
      const poison = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst${poison}`)
    })
    const url = `http://a.example.com:${RAW}/`
    const said = await curl(rig, url, url, url)
    expect(said.out.match(/first/g)).toHaveLength(3)
    expect(said.out).not.toContain('poison')
    expect(connections).toBe(3)
  })

  it('shows an expired certificate, or one of another host, is refused by name', async () => {
    const old = leafOf('old.example.com', -1)
    const other = leafOf('other.example.org', 1)
    const rig = await open({ authorities: [authority] })
    const tls = createTls(old, (_request, response) => response.end('never'))
    await serve(rig, TLS, tls as unknown as Server)
    const expired = await curl(rig, `https://old.example.com:${TLS}/`)
    expect(expired.out).toMatch(/CERT_HAS_EXPIRED.*"rule":"upstream-certificate".*\|502$/s)
    tls.setSecureContext(other)
    const wrong = await curl(rig, `https://b.example.com:${TLS}/`)
    expect(wrong.out).toContain('ALTNAME')
    tls.setSecureContext(leafOf('b.example.com', 1))
    expect((await curl(rig, `https://b.example.com:${TLS}/`)).out).toBe('never|200')
  })
})

describe('other branches', () => {
  /** Asks when the file is there, and makes the other one when it is done. */
  const ASK = `
import http.client, os, sys, time
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
for n in range(60):
    c = http.client.HTTPConnection('127.0.0.1', 3128, timeout=60)
    c.request('GET', 'http://b.example.com/'); assert c.getresponse().read().startswith(b'hello'); c.close()
open(sys.argv[2], 'w').close()
print('60')`
  const WAIT = `
import os, socket, sys, time
held = []
for n in range(400):
    s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'GET http://a.example.com:${RAW}/%d HTTP/1.1\\r\\nHost: a.example.com:${RAW}\\r\\n\\r\\n' % n); held.append(s)
open(sys.argv[1], 'w').close()
while not os.path.exists(sys.argv[2]): time.sleep(0.02)
print(len(held))`

  it('do not notice one whose four hundred requests wait for an end that is dead', async () => {
    const [loud, quiet] = [await open({ limits: { responseMs: 300_000 } }), await open()]
    await raw(loud, () => undefined)
    const files = ['held', 'answered'].map((name) => join(loud.directory, name))
    const waiting = loud.run(['python3', '-c', WAIT, ...files])
    const turns = new LongestTurn()
    expect(await quiet.run(['python3', '-c', ASK, ...files])).toMatchObject({ out: '60\n', err: '' })
    expect((await waiting).out.trim()).toBe('400')
    // Of the processor: what no other work on this machine can lengthen.
    expect(turns.end()).toBeLessThan(400)
  })
})
