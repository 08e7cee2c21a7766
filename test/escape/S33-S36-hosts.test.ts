import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, describe, expect } from 'vitest'
import { type Address, parseAddress } from '../../daemon/network/address.ts'
import { answer, parseQuery, RCODE, TYPE } from '../../daemon/network/dns-message.ts'
import type { NetworkOptions } from '../../daemon/network/gate-network.ts'
import { systemLookup } from '../../daemon/network/resolver.ts'
import { HOSTILE_HOSTS } from '../fixtures/hostile-hosts.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { Rig } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'
import { Capture } from './capture.ts'

const it = needs(root, program('python3'), program('curl'))
const rigs: Rig[] = []
const captures: Capture[] = []
afterEach(async () => {
  for (const capture of captures.splice(0)) await capture.close()
  for (const rig of rigs.splice(0)) await rig.close()
})

async function watch(...parameters: Parameters<typeof Capture.open>): Promise<Capture> {
  const capture = await Capture.open(...parameters)
  captures.push(capture)
  return capture
}

async function open(
  profile: Parameters<typeof Rig.open>[0],
  more: Partial<NetworkOptions> = {},
): Promise<Rig> {
  const rig = await Rig.open(profile, more)
  rigs.push(rig)
  return rig
}

function addresses(...texts: string[]): readonly Address[] {
  return texts.map(parseAddress).filter((one) => one !== undefined)
}

/** One raw request per connection to the explicit proxy; prints the status of each. */
const RAW = `
import sys, json, socket, threading
out = {}
def one(n, data):
    try:
        s = socket.create_connection(('127.0.0.1', 3128), 12)
        s.sendall(bytes.fromhex(data))
        out[n] = s.recv(65536).decode('latin1')[9:12]
    except OSError as e: out[n] = ''
cases = json.load(sys.stdin)
for start in range(0, len(cases), 32):
    group = [threading.Thread(target=one, args=(n, cases[n])) for n in range(start, min(start + 32, len(cases)))]
    [t.start() for t in group]; [t.join() for t in group]
print(json.dumps([out[n] for n in range(len(cases))]))
`
async function raw(rig: Rig, requests: readonly string[]): Promise<readonly string[]> {
  const input = JSON.stringify(requests.map((text) => Buffer.from(text, 'utf8').toString('hex')))
  const said = await rig.run(['python3', '-c', RAW], { input })
  expect(said.err).toBe('')
  return JSON.parse(said.out) as string[]
}

describe('S33 hosts that parsers read differently', () => {
  it('are refused, or dialled as exactly the name that was judged', async () => {
    const dialled: string[] = []
    const rig: Rig = await open(
      network([rule('one', { hosts: ['control.example.org'], ports: [80] })], { mode: 'open-read' }),
      {
        lookup: async (name) => {
          dialled.push(name)
          if (name !== 'control.example.org') throw new Error('not in this test')
          return { addresses: addresses(rig.outside.address), ttlSeconds: 60 }
        },
      },
    )
    const path = '/puzzled-marker-s33'
    const capture = await watch({ texts: [path], places: [rig.outside.address] })
    const hosts = HOSTILE_HOSTS.filter(({ host }) => host.length < 20_000)
    const shown = (host: string): string => (host.includes(':') && !host.includes('[') ? `[${host}]` : host)
    const get = await raw(
      rig,
      hosts.map(({ host }) => `GET http://${shown(host)}${path} HTTP/1.1\r\nHost: ${shown(host)}\r\n\r\n`),
    )
    const good = new Set(hosts.map(({ canonical }) => canonical))
    for (const name of dialled) expect(good.has(name), name).toBe(true)
    expect(dialled).toContain('good.example.evil.test')
    for (const [at, { host, canonical }] of hosts.entries()) {
      // The port and the empty path belong to the URL and not to the host.
      if (/^[^/?#]*:\d*$|[/?#]/.test(host)) continue
      if (canonical === undefined) expect(['400', ''], JSON.stringify(host)).toContain(get[at])
      else expect(['403', '502'], JSON.stringify(host)).toContain(get[at])
    }
    expect(await capture.seen()).toEqual({ [path]: 0, [rig.outside.address]: 0 })
    const url = `http://control.example.org${path}`
    expect(await raw(rig, [`GET ${url} HTTP/1.1\r\nHost: control.example.org\r\n\r\n`])).toEqual(['200'])
    expect((await capture.seen())[path]).toBeGreaterThan(0)
  })
})

/** A name service of the host: every name is at the same place. */
async function nameServer(asked: string[]): Promise<{ place: string; close(): Promise<void> }> {
  const socket = createSocket('udp4', (message, from) => {
    const query = parseQuery(message)
    if (!query.ok) return
    asked.push(query.question.name)
    const found = query.question.type === TYPE.A ? addresses(rigs[0]?.outside.address ?? '') : []
    socket.send(answer(query.question, RCODE.ok, found), from.port, from.address)
  })
  await new Promise<void>((ready) => socket.bind(0, '127.0.0.1', ready))
  return {
    place: `127.0.0.1:${socket.address().port}`,
    close: () => new Promise((done) => socket.close(() => done())),
  }
}

describe('S34 names', () => {
  it('that no rule allows are never looked up outside, and carry nothing out', async () => {
    const asked: string[] = []
    const server = await nameServer(asked)
    const rig = await open(network([rule('star', { hosts: ['*.example.com'], ports: [80] })]), {
      lookup: systemLookup([server.place]),
    })
    const names = [
      'evil.test',
      'mzxw6ytboi2dsnbrgm3dkobzge4tqnjuga2tknbu.example.com',
      `${'a'.repeat(60)}.example.com`,
      'a.b.c.d.e.f.g.h.i.j.example.com',
      '169.254.169.254.nip.io',
    ]
    // As they stand in a question: each label behind its length.
    const onWire = (name: string): string =>
      name.replace(/[^.]+\.?/g, (label) => {
        const text = label.replace('.', '')
        return String.fromCharCode(text.length) + text
      })
    const capture = await watch({ texts: [...names, 'ok.example.com'].map(onWire), places: [server.place] })
    const code = `import socket\nfor n in ${JSON.stringify([...names, 'ok.example.com'])}:\n  try: print(n, socket.getaddrinfo(n, 80)[0][4][0])\n  except OSError as e: print(n, e.args[0])`
    const said = await rig.run(['python3', '-c', code])
    for (const name of names) expect(said.out).toContain(`${name} -2`)
    expect(said.out).toMatch(/^ok\.example\.com (198\.1[89]\.|fd70:)/m)
    await rig.run(['curl', '-s', '-x', 'http://127.0.0.1:3128', ...names.map((name) => `http://${name}/`)])
    expect(asked).toEqual([])
    for (const [text, frames] of Object.entries(await capture.seen()))
      expect([text, frames]).toEqual([text, 0])
    expect(rig.events).toContainEqual(
      expect.objectContaining({ layer: 'dns', subject: 'evil.test', rule: 'no-rule' }),
    )
    expect((await rig.run(['curl', '-s', 'http://ok.example.com/'])).out).toContain('hello from')
    expect(new Set(asked)).toEqual(new Set(['ok.example.com']))
    const seen = await capture.seen()
    expect([seen[onWire('ok.example.com')], seen[onWire('evil.test')]]).toEqual([expect.any(Number), 0])
    expect(seen[onWire('ok.example.com')]).toBeGreaterThan(0)
    await server.close()
  })

  it('are pinned: a second answer with a private address is not followed, a first one is refused', async () => {
    const answers = ['PUBLIC', '169.254.169.254', '127.0.0.1', '10.0.0.1', '::ffff:169.254.169.254']
    let turn = 0
    const rig: Rig = await open(
      network([
        rule('one', { hosts: ['rebind.example.com'], ports: [80], addresses: ['127.88.0.0/16'] }),
        rule('two', { hosts: ['*.example.org'], ports: [80], addresses: [] }),
      ]),
      {
        lookup: async (name) => {
          const first = name.startsWith('rebind')
            ? (answers[turn++] ?? '')
            : name.startsWith('meta')
              ? '169.254.169.254'
              : '10.0.0.1'
          return { addresses: addresses(first === 'PUBLIC' ? rig.outside.address : first), ttlSeconds: 0 }
        },
      },
    )
    const refused = ['169.254.169.254', '127.0.0.1:80', '10.0.0.1']
    const capture = await watch({ places: [...refused, rig.outside.address] })
    const curl = async (url: string) =>
      (await rig.run(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', url])).out
    for (let time = 0; time < 3; time++) expect(await curl('http://rebind.example.com/')).toBe('200')
    expect(turn).toBe(1)
    expect(await curl('http://meta.example.org/')).toBe('403')
    expect(await curl('http://private.example.org/')).toBe('403')
    const seen = await capture.seen()
    expect(refused.map((place) => seen[place])).toEqual([0, 0, 0])
    expect(seen[rig.outside.address]).toBeGreaterThan(0)
  })

  it('that have only IPv6 work', async () => {
    const server = createServer((_request, response) => response.end('six'))
    await new Promise<void>((ready) => server.listen(0, '::1', ready))
    const { port } = server.address() as AddressInfo
    const rig = await open(
      network([rule('six', { hosts: ['six.example.com'], ports: [port], addresses: ['::1'] })]),
      {
        lookup: async () => ({ addresses: addresses('::1'), ttlSeconds: 60 }),
      },
    )
    const capture = await watch({ places: [`::1:${port}`] })
    expect((await rig.run(['curl', '-sS', `http://seven.example.com:${port}/`])).out).not.toBe('six')
    expect(await capture.seen()).toEqual({ [`::1:${port}`]: 0 })
    expect((await rig.run(['curl', '-sS', `http://six.example.com:${port}/`])).out).toBe('six')
    expect((await capture.seen())[`::1:${port}`]).toBeGreaterThan(0)
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })
})

describe('S35 addresses that are not the outside', () => {
  const SERVICES = [
    '169.254.169.254',
    '[fd00:ec2::254]',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '127.0.0.1',
    '[::1]',
    '0.0.0.0',
    '10.0.0.1',
    '192.168.0.1',
    '172.16.0.1',
    '[fe80::1]',
    '[fc00::1]',
    '[::ffff:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '224.0.0.1',
    '255.255.255.255',
    '100.64.0.1',
    '198.18.0.1',
  ]

  it('are refused as literals and behind names, every address of this host among them', async () => {
    const own = Object.values(networkInterfaces()).flatMap((list) =>
      (list ?? []).map(({ address }) => address.replace(/%.*/, '')),
    )
    expect(own.length).toBeGreaterThan(0)
    const all = [...SERVICES, ...own.map((text) => (text.includes(':') ? `[${text}]` : text))]
    let answer = ''
    const rig: Rig = await open(
      network([rule('opted-in', { hosts: ['in.example'], ports: [80] })], { mode: 'open-read' }),
      {
        lookup: async (name) => ({
          addresses: addresses(name === 'in.example' ? rig.outside.address : answer),
          ttlSeconds: 0,
        }),
      },
    )
    // A port that nobody else here uses: this host's own addresses carry other traffic.
    const port = randomInt(20_000, 30_000)
    const bare = (host: string): string => host.replace(/[[\]]/g, '')
    const places = all.map((host) => `${parseAddress(bare(host))?.text ?? ''}:${port}`)
    const capture = await watch({ texts: ['/puzzled-marker-s35'], places })
    const get = (host: string, suffix = `:${port}`): string =>
      `GET http://${host}${suffix}/puzzled-marker-s35 HTTP/1.1\r\nHost: ${host}${suffix}\r\n\r\n`
    const literal = await raw(
      rig,
      all.map((host) => get(host)),
    )
    expect(Object.fromEntries(all.map((host, at) => [host, literal[at]]))).toEqual(
      Object.fromEntries(all.map((host) => [host, '403'])),
    )
    for (const [at, host] of all.entries()) {
      answer = bare(host)
      const [status] = await raw(rig, [get(`n${at}.example`)])
      expect([host, status]).toEqual([host, '403'])
    }
    for (const [place, frames] of Object.entries(await capture.seen()))
      expect([place, frames]).toEqual([place, 0])
    // One that a rule opts in, though it is this host's as well.
    expect(await raw(rig, [get('in.example', '')])).toEqual(['200'])
    expect((await capture.seen())['/puzzled-marker-s35']).toBeGreaterThan(0)
  })
})

describe('S36 connections that say one host and mean another', () => {
  /** CONNECT to one host, SNI of another, Host of a third; prints the status of the request. */
  const probe = (connect: string, sni: string, host: string, port = 443): string => `
import socket, ssl
s = socket.create_connection(('127.0.0.1', 3128), 60)
s.sendall(b'CONNECT ${connect}:${port} HTTP/1.1\\r\\nHost: ${connect}:${port}\\r\\n\\r\\n')
first = s.recv(4096).decode()[9:12]
if first != '200': print('connect', first); raise SystemExit
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
try:
  t = c.wrap_socket(s, server_hostname=${sni === '' ? 'None' : `'${sni}'`})
  t.sendall(b'GET / HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n')
  print(t.recv(4096).decode()[9:12])
except OSError as e: print('closed')
`
  it.each([
    ['a.example.com', 'a.example.com', 'a.example.com', '200'],
    ['a.example.com', '', 'a.example.com', '200'],
    ['a.example.com', 'b.example.com', 'a.example.com', '421'],
    ['a.example.com', 'b.example.com', 'b.example.com', '421'],
    ['a.example.com', 'a.example.com', 'b.example.com', '421'],
    ['a.example.com', '', 'b.example.com', '421'],
    ['a.example.com', 'a.example.com', 'a.example.com:8443', '421'],
    ['a.example.com', 'evil.test', 'evil.test', '421'],
    ['evil.test', 'a.example.com', 'a.example.com', 'connect 403'],
    ['t.example.org', 'a.example.com', 'a.example.com', '421'],
    ['t.example.org', 't.example.org', 'evil.test', '200'],
  ])('CONNECT %s, SNI %s, Host %s: %s', async (connect, sni, host, expected) => {
    const rig = await open(
      network([
        rule('read', { hosts: ['*.example.com'] }),
        rule('opaque', { hosts: ['t.example.org'], class: 'live', tls: 'tunnel' }),
      ]),
    )
    const capture = await watch({ places: [rig.outside.address] })
    expect((await rig.run(['python3', '-c', probe(connect, sni, host)])).out.trim()).toBe(expected)
    const frames = (await capture.seen())[rig.outside.address]
    if (expected === '200') expect(frames).toBeGreaterThan(0)
    else expect([frames, rig.outside.requests]).toEqual([0, []])
  })

  it('to other ports, and without TLS on port 443, are refused', async () => {
    const rig = await open(network([rule('read', { hosts: ['a.example.com'] })]))
    const capture = await watch({ places: [rig.outside.address] })
    for (const port of [22, 25, 80, 8443])
      expect(
        (
          await rig.run(['python3', '-c', probe('a.example.com', 'a.example.com', 'a.example.com', port)])
        ).out.trim(),
      ).toBe('connect 403')
    const plain = await raw(rig, [
      'CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\n\r\nGET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n',
    ])
    expect(plain).toEqual(['200'])
    expect(rig.events).toContainEqual(expect.objectContaining({ rule: 'not-tls' }))
    expect([await capture.seen(), rig.outside.requests]).toEqual([{ [rig.outside.address]: 0 }, []])
    // The same way, as it is meant.
    await rig.run(['python3', '-c', probe('a.example.com', 'a.example.com', 'a.example.com')])
    expect((await capture.seen())[rig.outside.address]).toBeGreaterThan(0)
  })
})
