import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, vi } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { collectGarbage } from '../fixtures/garbage.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { needs, program, root } from '../tier/needs.ts'
import { makeBranch, requestOf, run, type TestBranch, warmUp } from './branch.fixture.ts'
import { buildGoReader } from './go-program.ts'
import { Rig } from './network-rig.ts'

const it = needs(root, program('curl'), program('python3'))
const NETWORK = network([
  rule('live', { hosts: ['live.example.com'], ports: [80, 443], class: 'live' }),
  rule('write', { hosts: ['*.example.com'], methods: ['POST'], class: 'queue' }),
  rule('read', { hosts: ['*.example.com'], ports: [80, 443] }),
])

/** Every kind of socket that could see past TCP and UDP. */
const SOCKETS = `
import socket, errno
for name, args in {
    'tcp': (socket.AF_INET, socket.SOCK_STREAM, 0),
    'packet': (17, socket.SOCK_RAW, 0),
    'raw': (socket.AF_INET, socket.SOCK_RAW, 1),
    'raw6': (socket.AF_INET6, socket.SOCK_RAW, 58),
    'ping': (socket.AF_INET, socket.SOCK_DGRAM, 1),
    'netfilter': (16, socket.SOCK_RAW, 12),
    'vsock': (40, socket.SOCK_STREAM, 0),
    'mptcp': (socket.AF_INET, socket.SOCK_STREAM, 262),
    'sctp': (socket.AF_INET, socket.SOCK_STREAM, 132),
}.items():
    try:
        socket.socket(*args); print(name, 'ok')
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))
`

let rig: Rig
let branch: TestBranch
let launcher: Launcher
beforeAll(async () => await warmUp(new Launcher()))
beforeEach(async () => {
  rig = await Rig.open(NETWORK)
  branch = makeBranch({ profile: { network: NETWORK } })
  launcher = new Launcher({ network: async () => rig.network })
})
afterEach(async () => {
  branch.remove()
  await rig.close()
})

const inside = (...argv: string[]) => run(launcher, branch, argv)

describe('an agent in its branch', () => {
  it('reads with and without the variables, and trusts the gate by the bundle alone', async () => {
    const proxied = await inside('curl', '-sS', 'https://a.example.com/one')
    expect([proxied.output, proxied.errors]).toEqual(['hello from a.example.com/one', ''])
    const bare = await inside('env', '-i', 'PATH=/usr/bin:/bin', 'curl', '-sS', 'https://a.example.com/two')
    expect([bare.output, bare.errors]).toEqual(['hello from a.example.com/two', ''])
    const code = "import urllib.request as u; print(u.urlopen('https://a.example.com/three').read().decode())"
    expect((await inside('/usr/bin/python3', '-c', code)).output).toBe('hello from a.example.com/three\n')
  })

  it('costs no copy of the bundles for as long as it runs', async () => {
    let given: WeakRef<Buffer> | undefined
    const launched = new Launcher({
      network: async () => {
        const bytes = Buffer.alloc(500_000)
        given = new WeakRef(bytes)
        return { ...rig.network, files: [{ path: '/etc/ssl/one-more.pem', bytes }] }
      },
    })
    const agent = await launched.start(requestOf(branch, ['sleep', '60']))
    // What a WeakRef was asked for stays until the turn is over.
    await vi.waitFor(() => {
      collectGarbage()
      expect(given?.deref()).toBeUndefined()
    })
    await agent.kill('signal')
    await agent.exited
  })

  it('writes into the queue', async () => {
    const said = await inside('curl', '-sS', '-d', 'x=1', 'https://a.example.com/issues')
    expect(said.output).toContain('"queued":true')
    expect(rig.outside.requests).toEqual([])
    expect(rig.network.queue.queue.summaries()).toMatchObject([
      { method: 'POST', host: 'a.example.com', path: '/issues', bytes: 3 },
    ])
  })

  it('has no socket that sees past TCP and UDP', async () => {
    const report = Object.fromEntries(
      (await inside('/usr/bin/python3', '-c', SOCKETS)).output
        .trim()
        .split('\n')
        .map((line) => line.split(' ')),
    )
    const { tcp, ...others } = report
    expect(tcp).toBe('ok')
    for (const [name, result] of Object.entries(others))
      expect(result, name).toMatch(
        /^(EPERM|EACCES|EAFNOSUPPORT|ENOPROTOOPT|EPROTONOSUPPORT|ESOCKTNOSUPPORT)$/,
      )
    expect(Object.keys(others)).toHaveLength(8)
  })
})

/** Reads line by line, and says after each of them that it has it. */
const FOLLOW = `
import urllib.request as u, sys
r = u.urlopen(sys.argv[1]); n = 0
for line in r:
    if line.startswith(b'data:'):
        n += 1
        u.urlopen('http://b.example.com/seen/%d' % n).read()
print(n)
`

const GRPC = `
const http2 = require('http2'), tls = require('tls')
const s = http2.connect('https://' + process.argv[1], { createConnection: () => tls.connect({ host: '198.18.0.9', port: 443,
  servername: process.argv[1], rejectUnauthorized: false, ALPNProtocols: ['h2'] }) })
const r = s.request({ ':method': 'POST', ':path': '/pkg.Service/Call', 'content-type': 'application/grpc+proto', te: 'trailers' })
r.on('response', (h, flags) => { console.log(JSON.stringify([h[':status'], h['grpc-status'], h['grpc-message'], flags & 1])); s.close() })
r.on('error', (e) => { console.log(e.code); process.exit() })
r.resume(); r.end(Buffer.alloc(5))
`

describe('a program in its branch', () => {
  needs(
    root,
    program('go'),
    program('python3'),
  )('of Go reads http and https, with and without the variables', async () => {
    const binary = join(branch.base, 'reads')
    buildGoReader(rig.directory, binary)
    const urls = ['http://a.example.com/go', 'https://a.example.com/go']
    const expected = 'HTTP/1.1 hello from a.example.com/go\nHTTP/2.0 hello from a.example.com/go\n'
    const bare = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy', 'ALL_PROXY'].flatMap((name) => [
      '-u',
      name,
    ])
    for (const options of [[], bare]) {
      const said = await inside('env', ...options, binary, ...urls)
      expect([said.output, said.errors]).toEqual([expected, ''])
    }
  })

  it.each(['http', 'https'])(
    'follows events over %s for as long as they come, one by one',
    async (scheme) => {
      const count = 60
      let [sent, seen] = [0, 0]
      let more = (): void => undefined
      rig.outside.handler = (request, response) => {
        if (request.url !== '/events') {
          seen = Number(request.url?.split('/').at(-1))
          response.end('ok')
          more()
          return
        }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        // The next one is sent only when the program has shown that it has the one before.
        more = () => {
          if (sent === count) response.end()
          else response.write(`data: ${++sent}\n\n`)
        }
        more()
      }
      const said = await inside('/usr/bin/python3', '-c', FOLLOW, `${scheme}://a.example.com/events`)
      expect([said.output.trim(), said.errors, sent, seen]).toEqual([String(count), '', count, count])
    },
  )

  needs(root, program('node'))(
    'that speaks gRPC is told in its own words that it cannot, and what would help',
    async () => {
      const call = async (host: string): Promise<unknown> =>
        JSON.parse((await inside('node', '-e', GRPC, host)).output)
      expect(await call('live.example.com')).toEqual([
        200,
        '12',
        expect.stringMatching(/gRPC needs HTTP\/2 .*\[grpc\].*tls: tunnel, class: live/),
        1,
      ])
      expect(await call('other.example.org')).toEqual([200, '7', expect.stringContaining('No rule'), 1])
      expect(rig.outside.requests).toEqual([])
      expect(rig.events).toContainEqual(expect.objectContaining({ kind: 'denial', rule: 'grpc' }))
    },
  )
})
