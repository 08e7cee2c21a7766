import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { LongestTurn } from '../root/longest-turn.ts'
import { Rig } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'
import { Capture } from './capture.ts'

const it = needs(root, program('curl'), program('python3'))
const MEBIBYTE = 1 << 20
/** Hundreds of times as large as what is sent of it, and more than may be taken of memory for it. */
const LARGE = 256 * MEBIBYTE
const PLACEHOLDER = 'PUZZLED-TOKEN-1'

const rigs: Rig[] = []
const captures: Capture[] = []
afterEach(async () => {
  for (const capture of captures.splice(0)) await capture.close()
  for (const rig of rigs.splice(0)) await rig.close()
})
async function open(...parameters: Parameters<typeof Rig.open>): Promise<Rig> {
  const rig = await Rig.open(...parameters)
  rigs.push(rig)
  return rig
}
async function watch(rig: Rig): Promise<() => Promise<number>> {
  const capture = await Capture.open({ places: [rig.outside.address] })
  captures.push(capture)
  return async () => (await capture.seen())[rig.outside.address] ?? -1
}
const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

describe('S41 what is small on the way and large when it is unpacked', () => {
  const bomb = gzipSync(Buffer.alloc(LARGE, '{"query":"{a}"}'))
  const get = (url: string): string[] => ['curl', '-sS', '--max-time', '60', '-w', '|%{http_code}', url]

  it('control: it is large', () => {
    expect(bomb.length).toBeLessThan(LARGE / 200)
    expect(() => gunzipSync(bomb, { maxOutputLength: LARGE - 1 })).toThrow(RangeError)
  })

  it('is passed on as it came, and nobody unpacks it', async () => {
    const rig = await open(network([rule('live', { class: 'live', ports: [80] })]))
    const left = await watch(rig)
    rig.outside.handler = (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' })
      response.end(bomb)
    }
    const [before, turns] = [process.memoryUsage().rss, new LongestTurn()]
    const said = await rig.run(['sh', '-c', 'curl -sS http://api.example.com/ | sha256sum'])
    expect(said.out.split(' ')[0]).toBe(digest(bomb))
    expect([process.memoryUsage().rss - before < LARGE / 2, turns.end() < 400]).toEqual([true, true])
    expect(await left()).toBeGreaterThan(0)
  })

  it('is refused where an answer must be searched for secrets', async () => {
    const rig = await open(network([rule('live', { class: 'live' })]))
    const secret = join(rig.directory, 'secret')
    writeFileSync(secret, 'sk-live-0123456789\n', { mode: 0o600 })
    const source = { kind: 'file', path: secret } as const
    const credential = {
      placeholder: PLACEHOLDER,
      source,
      hosts: ['api.example.com'],
      header: 'authorization',
      why: 'x',
    }
    const searching = await open(network([rule('live', { class: 'live' })], { credentials: [credential] }))
    const asked: unknown[] = []
    for (const { outside } of [rig, searching])
      outside.handler = (request, response) => {
        asked.push(request.headers['accept-encoding'])
        response.writeHead(200, { 'content-encoding': 'gzip' })
        response.end(bomb)
      }
    const header = ['-o', '/dev/null', '--compressed', '-H', `Authorization: ${PLACEHOLDER}`]
    const ask = async (where: Rig): Promise<string> =>
      (await where.run([...get('https://api.example.com/'), ...header])).out
    // The positive control: where nothing is searched for, it passes.
    expect(await ask(rig)).toBe('|200')
    expect(await ask(searching)).toBe('|502')
    expect(asked).toEqual([expect.stringContaining('gzip'), 'identity'])
    expect(searching.events).toContainEqual(expect.objectContaining({ rule: 'answer-unsearchable' }))
  })

  it('is a write where a body decides, and waits in the queue as it came', async () => {
    const graph = rule('graph', { ports: [80], class: 'queue', readBody: 'graphql', methods: ['POST'] })
    const rig = await open(network([graph]))
    const left = await watch(rig)
    const post = async (body: Buffer, ...more: string[]): Promise<string> => {
      writeFileSync(join(rig.directory, 'body'), body)
      const words = ['--data-binary', '@body', '-H', 'content-type: application/json', ...more]
      return (await rig.run([...get('http://api.example.com/graphql'), ...words])).out
    }
    const query = Buffer.from('{"query":"{a}"}')
    expect(await post(gzipSync(query), '-H', 'content-encoding: gzip')).toMatch(/\|202$/)
    expect(await post(bomb, '-H', 'content-encoding: gzip')).toMatch(/\|202$/)
    expect([await left(), rig.outside.requests]).toEqual([0, []])
    expect(await post(query)).toMatch(/^hello .*\|200$/)
    expect(await left()).toBeGreaterThan(0)
  })
})

/** Opens tunnels, says so, and goes on when the last file is there: which of them still carry a request? */
const HOLD = `
import os, socket, ssl, sys, time
count, ready, go_on = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
def tunnel():
    try:
        s = socket.create_connection(('127.0.0.1', 3128), 60)
        s.sendall(b'CONNECT t.example.org:443 HTTP/1.1\\r\\nHost: t.example.org:443\\r\\n\\r\\n')
        if s.recv(4096)[9:12] != b'200': return None
        return context.wrap_socket(s, server_hostname='t.example.org')
    except OSError: return None
held = [tunnel() for n in range(count)]
opened = sum(one is not None for one in held)
open(ready, 'w').close()
while not os.path.exists(go_on): time.sleep(0.02)
def carries(one):
    try:
        one.sendall(b'GET / HTTP/1.1\\r\\nHost: t.example.org\\r\\nConnection: close\\r\\n\\r\\n')
        return one.recv(4096)[9:12] == b'200'
    except OSError: return False
print(opened, sum(one is not None and carries(one) for one in held))
`

describe('S41 tunnels that are held open', () => {
  const PROFILE = network([
    rule('opaque', { hosts: ['t.example.org'], class: 'live', tls: 'tunnel' }),
    rule('read', { hosts: ['api.example.com'], ports: [80] }),
  ])
  const until = async (path: string): Promise<void> => {
    while (!existsSync(path)) await sleep(20)
  }

  it('are as many as a branch may have, and other branches have theirs', async () => {
    const [loud, quiet] = [await open(PROFILE, { limits: { connections: 10 } }), await open(PROFILE)]
    const [ready, done] = [join(loud.directory, 'ready'), join(loud.directory, 'done')]
    const holding = loud.run(['python3', '-c', HOLD, '30', ready, done])
    await until(ready)
    const ask = ['curl', '-sS', '-w', '|%{http_code}', 'http://api.example.com/']
    expect((await quiet.run(ask)).out).toMatch(/^hello .*\|200$/)
    // As many as the loud one tried, for one whose profile lets it.
    writeFileSync(done, '')
    const control = await quiet.run(['python3', '-c', HOLD, '30', join(quiet.directory, 'ready'), done])
    expect([(await holding).out.trim(), control.out.trim()]).toEqual(['10 10', '30 30'])
    expect(loud.events).toContainEqual(expect.objectContaining({ rule: 'too-many-connections' }))
    expect((await loud.run(ask)).out).toMatch(/^hello .*\|200$/)
  })

  it('are cut when nothing has passed for as long as is allowed, and not before', async () => {
    const [short, long] = [await open(PROFILE, { limits: { tunnelIdleMs: 2_000 } }), await open(PROFILE)]
    const ready = (rig: Rig): string => join(rig.directory, 'ready')
    const cut = join(short.directory, 'cut')
    const kept = long.run(['python3', '-c', HOLD, '1', ready(long), cut])
    await until(ready(long))
    // Says that its own was cut by going on: it reads until there is nothing more to come.
    const script = HOLD.replace(/^while not .*$/m, 'held[0] is not None and held[0].recv(1)')
    const ended = await short.run(['python3', '-c', script, '1', ready(short), cut])
    expect(ended.err).toBe('')
    expect(ended.out.trim()).toMatch(/^[01] 0$/)
    writeFileSync(cut, '')
    expect((await kept).out.trim()).toBe('1 1')
  })
})
