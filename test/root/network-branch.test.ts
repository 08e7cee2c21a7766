import { afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { needs, program, root } from '../tier/needs.ts'
import { makeBranch, run, type TestBranch, warmUp } from './branch.fixture.ts'
import { Rig } from './network-rig.ts'

const it = needs(root, program('curl'), program('python3'))
const NETWORK = network([
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
