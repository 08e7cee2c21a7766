import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { needs, program, root } from '../tier/needs.ts'
import { Rig } from './network-rig.ts'

const it = needs(root, program('curl'), program('git'), program('python3'))
const PROFILE = network(
  [
    rule('live', { hosts: ['live.example.com'], ports: [80, 443], class: 'live' }),
    rule('graph', { hosts: ['graph.example.com'], class: 'queue', readBody: 'graphql' }),
    rule('read', { hosts: ['*.example.com'], ports: [80, 443] }),
  ],
  { expose: [{ host: 'localhost', port: 5432, why: 'database' }] },
)
let rig: Rig
beforeEach(async () => {
  rig = await Rig.open(PROFILE)
})
afterEach(async () => await rig.close())

const curl = async (...args: string[]) => (await rig.run(['curl', '-sS', '--max-time', '60', ...args])).out

describe('traffic', () => {
  it('server-sent events arrive one by one', async () => {
    let finish = (): void => undefined
    rig.outside.handler = (request, response) => {
      if (request.url === '/finish') {
        response.end('asked')
        finish()
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: one\n\n')
      finish = () => response.end('data: two\n\n')
    }
    // The second event is sent only after the program has shown the first.
    const code = `import urllib.request as u
r = u.urlopen('https://a.example.com/events')
print(r.readline().decode().strip()); r.readline()
print(u.urlopen('http://b.example.com/finish').read().decode())
print(r.readline().decode().strip())`
    expect((await rig.run(['python3', '-c', code])).out).toBe('data: one\nasked\ndata: two\n')
  })

  it('large bodies stream both ways unchanged', async () => {
    const size = 96 * 1024 * 1024
    const piece = createHash('sha512').update('x').digest()
    const hash = createHash('sha256')
    let uploaded = 0
    rig.outside.handler = (request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-length': size })
        let left = size
        const more = (): void => {
          while (left > 0) {
            const chunk = Buffer.alloc(Math.min(left, 65_536), piece)
            left -= chunk.length
            if (!response.write(chunk)) return void response.once('drain', more)
          }
          response.end()
        }
        more()
        return
      }
      request.on('data', (chunk: Buffer) => {
        hash.update(chunk)
        uploaded += chunk.length
      })
      request.on('end', () => response.end(hash.digest('hex')))
    }
    const before = process.memoryUsage().rss
    const down = await rig.run(['sh', '-c', 'curl -sS https://a.example.com/big | tee big | sha256sum'])
    const expected = createHash('sha256')
    for (let left = size; left > 0; left -= 65_536) expected.update(Buffer.alloc(65_536, piece))
    expect(down.out).toContain(expected.digest('hex'))
    const up = await rig.run([
      'sh',
      '-c',
      'curl -sS -T big https://live.example.com/up; echo; sha256sum < big',
    ])
    const [theirs, mine] = up.out.split('\n')
    expect(uploaded).toBe(size)
    expect(mine).toContain(theirs)
    // Streams, not copies: well below the two bodies together. The other end lives in this process, too.
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024)
  })

  it('an expectation is answered when the body is wanted, and not when it is denied', async () => {
    const yes = await rig.run([
      'curl',
      '-sSv',
      '--http1.1',
      '-H',
      'Expect: 100-continue',
      '-d',
      'x',
      'https://live.example.com/',
    ])
    expect(yes.err).toContain('100 Continue')
    const no = await rig.run([
      'curl',
      '-sSv',
      '--http1.1',
      '-H',
      'Expect: 100-continue',
      '-d',
      'x',
      'https://a.example.com/',
    ])
    expect(no.err).not.toContain('100 Continue')
    expect(no.err).toContain('403')
  })

  it('trailers and repeated headers come back', async () => {
    rig.outside.handler = (_request, response) => {
      response.writeHead(200, { trailer: 'x-sum', 'set-cookie': ['a=1', 'b=2'] })
      response.write('body')
      response.addTrailers({ 'x-sum': 'abc' })
      response.end()
    }
    const out = await curl('--http1.1', '-i', 'https://a.example.com/')
    expect(out).toMatch(/set-cookie: a=1[\s\S]*set-cookie: b=2/i)
    expect(out).toContain('body')
  })

  it('an answer that ends too early fails, and is no short success', async () => {
    rig.outside.handler = (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('short')
      setTimeout(() => response.destroy(), 100)
    }
    const said = await rig.run(['curl', '-sS', 'https://a.example.com/'])
    expect(said.code).not.toBe(0)
    expect((await rig.run(['curl', '-sS', '--http1.1', 'https://a.example.com/'])).code).not.toBe(0)
  })

  it('another end that is dead or not to be trusted is a 502 with a reason', async () => {
    rig.outside.handler = (request) => request.socket.destroy()
    expect(await curl('https://a.example.com/')).toContain('"rule":"upstream-failed"')
    await rig.outside.close()
    expect(await curl('http://a.example.com/')).toMatch(/ECONNREFUSED/)
  })

  it('a certificate of an unknown authority is refused', async () => {
    const strange = await Rig.open(PROFILE, { authorities: [] })
    const said = await strange.run(['curl', '-sS', 'https://a.example.com/'])
    expect(said.out).toContain('"rule":"upstream-certificate"')
    expect(strange.outside.requests).toEqual([])
    await strange.close()
  })

  it('a GraphQL query is a read and a mutation waits', async () => {
    const post = (query: string) =>
      curl(
        '-H',
        'content-type: application/json',
        '-d',
        JSON.stringify({ query }),
        'https://graph.example.com/graphql',
      )
    expect(await post('{ me { name } }')).toContain('hello from')
    expect(await post('mutation { drop }')).toContain('"queued":true')
    expect(rig.outside.requests.map((one) => one.body)).toEqual(['{"query":"{ me { name } }"}'])
  })
})

describe('WebSockets', () => {
  const CLIENT = `
import socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(('HOST', 443), 60), server_hostname='HOST')
s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: HOST\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n')
head = s.recv(4096).decode()
print(head.split('\\r\\n')[0])
if ' 101 ' in head:
    s.sendall(b'ping'); print(s.recv(100).decode())
`
  it('pass under a live rule and under no other', async () => {
    rig.outside.upgrade = (request, socket) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Key: ${request.headers['sec-websocket-key']}\r\n\r\n`,
      )
      socket.on('data', (chunk) => socket.write(`got ${String(chunk)}`))
      socket.on('error', () => socket.destroy())
    }
    const live = await rig.run(['python3', '-c', CLIENT.replaceAll('HOST', 'live.example.com')])
    expect(live.out).toBe('HTTP/1.1 101 Switching Protocols\ngot ping\n')
    const read = await rig.run(['python3', '-c', CLIENT.replaceAll('HOST', 'a.example.com')])
    expect(read.out).toContain('403')
  })
})

describe('git', () => {
  it('clones over https and is told why it cannot push', async () => {
    const repository = join(rig.directory, 'origin')
    mkdirSync(repository)
    const git = (...args: string[]) =>
      spawnSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
        encoding: 'utf8',
      })
    git('init', '-q', '-b', 'main')
    writeFileSync(join(repository, 'file'), 'content')
    git('add', '.')
    git('commit', '-qm', 'one')
    git('update-server-info')
    // The dumb protocol: plain files, so that no server program is needed.
    rig.outside.handler = (request, response) => {
      const path = (request.url ?? '').replace(/\?.*/, '').replace('/repo.git', '/.git')
      const found = spawnSync('cat', [join(repository, path)])
      response.writeHead(found.status === 0 ? 200 : 404)
      response.end(found.stdout)
    }
    const said = await rig.run(['git', 'clone', '-q', 'https://a.example.com/repo.git', 'copy'])
    expect([said.err, said.code]).toEqual(['', 0])
    const push = await rig.run(['git', '-C', 'copy', 'push', 'origin', 'main'])
    expect(push.code).not.toBe(0)
    expect(rig.events).toContainEqual(
      expect.objectContaining({ kind: 'denial', message: expect.stringContaining('git push') }),
    )
  })
})

describe('exposed ports', () => {
  it('lead to this host, and other ports do not', async () => {
    const { createServer } = await import('node:net')
    const server = createServer((socket) => socket.end('database'))
    const free = await new Promise<boolean>((done) => {
      server.once('error', () => done(false))
      server.listen(5432, '127.0.0.1', () => done(true))
    })
    expect(free, 'port 5432 of this host is free').toBe(true)
    const code = (port: number) =>
      `import socket\ntry: print(socket.create_connection(('localhost', ${port}), 60).recv(20).decode())\nexcept OSError as e: print('refused')`
    expect((await rig.run(['python3', '-c', code(5432)])).out).toBe('database\n')
    expect((await rig.run(['python3', '-c', code(5433)])).out).toBe('refused\n')
    await new Promise((done) => server.close(done))
  })
})
