import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { Rig } from './network-rig.ts'

const PROFILE = network([
  rule('live', { hosts: ['live.example.com'], ports: [80, 443], class: 'live' }),
  rule('write', { hosts: ['*.example.com'], ports: [80, 443], methods: ['POST', 'PUT'], class: 'queue' }),
  rule('read', { hosts: ['*.example.com'], ports: [80, 443] }),
])

let rig: Rig
beforeEach(async () => {
  rig = await Rig.open(PROFILE)
})
afterEach(async () => await rig.close())

const modes = [
  ['with the variables', false],
  ['without any variable', true],
] as const

describe.each(modes)('programs %s', (_name, bare) => {
  const curl = (...args: string[]) =>
    rig.run(['curl', '-sS', '--max-time', '10', '-w', '|%{http_code} %{http_version}', ...args], { bare })

  it('curl reads http, https and https by HTTP/1.1', async () => {
    expect((await curl('http://a.example.com/x?y=1')).out).toBe('hello from a.example.com/x?y=1|200 1.1')
    expect((await curl('https://a.example.com/x')).out).toBe('hello from a.example.com/x|200 2')
    expect((await curl('--http1.1', 'https://a.example.com/x')).out).toBe(
      'hello from a.example.com/x|200 1.1',
    )
    expect(rig.outside.requests.map((one) => one.host)).toEqual(Array(3).fill('a.example.com'))
  })

  it('curl writes into the queue and nothing leaves', async () => {
    const said = await curl(
      '-H',
      'content-type: application/json',
      '-d',
      '{"title":"x"}',
      'https://a.example.com/issues',
    )
    expect(said.out).toContain('"queued":true')
    expect(said.out).toContain('|202 2')
    expect(rig.outside.requests).toEqual([])
    const last = rig.network.queue.queue.list().at(-1)
    expect(last?.request).toMatchObject({
      method: 'POST',
      host: 'a.example.com',
      target: '/issues',
      rule: 'write',
    })
    expect((await rig.network.queue.queue.body(last?.id ?? '')).toString()).toBe('{"title":"x"}')
  })

  it('curl is told why and what would help', async () => {
    const denied = await curl('-X', 'DELETE', 'https://a.example.com/x')
    const [body = '', status] = denied.out.split('|')
    expect(status).toMatch(/^403/)
    expect(JSON.parse(body)).toMatchObject({
      rule: 'read',
      status: 403,
      help: expect.stringContaining('class: queue'),
    })
    expect(rig.events).toContainEqual(
      expect.objectContaining({ kind: 'denial', layer: 'proxy', rule: 'read' }),
    )
    expect(rig.network.blocked()).toContainEqual(
      expect.objectContaining({ rule: 'read', subject: 'DELETE https://a.example.com:443/x' }),
    )
  })

  it('curl cannot reach a host without a rule', async () => {
    const said = await curl('https://evil.test/')
    expect(said.code).not.toBe(0)
    expect(rig.outside.requests).toEqual([])
  })

  it('python reads', async () => {
    const code = "import urllib.request as u; print(u.urlopen('https://a.example.com/py').read().decode())"
    expect((await rig.run(['python3', '-c', code], { bare })).out).toBe('hello from a.example.com/py\n')
  })

  it('node fetches', async () => {
    const env: Record<string, string> = bare
      ? { NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt' }
      : {}
    const code = "fetch('https://a.example.com/node').then((r) => r.text()).then(console.log)"
    const said = await rig.run([process.execPath, '-e', code], { bare, env })
    expect(said.out).toBe('hello from a.example.com/node\n')
  })

  it('sends live writes now, bodies of 1 byte and of 8 MiB, with and without a length', async () => {
    for (const size of [1, 8 * 1024 * 1024]) {
      const body = Buffer.alloc(size, 'x').toString()
      for (const extra of [[], ['-H', 'transfer-encoding: chunked']]) {
        rig.outside.requests.length = 0
        const args = [
          'curl',
          '-sS',
          '--http1.1',
          '--data-binary',
          '@-',
          ...extra,
          'https://live.example.com/up',
        ]
        const said = await rig.run(args, { bare, input: body })
        expect(said.err).toBe('')
        expect(rig.outside.requests[0]?.body.length).toBe(size)
      }
    }
  })
})
