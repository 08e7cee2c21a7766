import { createSocket } from 'node:dgram'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { Rig } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'
import { Capture } from './capture.ts'

const it = needs(root, program('python3'))
const MARKER = 'puzzled-escape-marker'

/** Tries every way out, as root of the namespace: more than an agent, which has no capability, can do. */
const ATTACK = `
import socket, struct, errno
M = b'${MARKER}'
T = '198.51.100.77'
T6 = '2001:db8::77'
def attempt(name, work):
    try:
        work()
        print(name, 'ok')
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, type(error).__name__))
def udp(family, target, port):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.sendto(M, (target, port))
def tcp(family, target, port, protocol=0):
    s = socket.socket(family, socket.SOCK_STREAM, protocol)
    s.settimeout(20)
    s.connect((target, port))
    s.sendall(M)
def raw(family, target, protocol, payload=M):
    socket.socket(family, socket.SOCK_RAW, protocol).sendto(payload, (target, 0))
def packet():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
    s.bind(('lo', 0))
    s.send(b'\\0' * 12 + b'\\x08\\0' + struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(M), 1, 0, 64, 17, 0, socket.inet_aton('127.0.0.1'), socket.inet_aton(T)) + M)
attempt('udp', lambda: udp(socket.AF_INET, T, 9))
attempt('quic', lambda: udp(socket.AF_INET, T, 443))
attempt('udp6', lambda: udp(socket.AF_INET6, T6, 9))
attempt('mapped', lambda: udp(socket.AF_INET6, '::ffff:' + T, 9))
attempt('link-local', lambda: udp(socket.AF_INET, '169.254.169.254', 80))
attempt('broadcast', lambda: udp(socket.AF_INET, '255.255.255.255', 9))
attempt('multicast', lambda: udp(socket.AF_INET, '224.0.0.251', 5353))
attempt('multicast6', lambda: udp(socket.AF_INET6, 'ff02::1', 5353))
attempt('tcp-port', lambda: tcp(socket.AF_INET, T, 22))
attempt('tcp6-port', lambda: tcp(socket.AF_INET6, T6, 22))
attempt('mptcp', lambda: tcp(socket.AF_INET, T, 80, 262))
attempt('tcp-web', lambda: tcp(socket.AF_INET, T, 80))
attempt('icmp', lambda: raw(socket.AF_INET, T, 1, b'\\x08\\0\\0\\0\\0\\0\\0\\0' + M))
attempt('sctp', lambda: raw(socket.AF_INET, T, 132, b'\\0' * 12 + M))
attempt('ip-in-ip', lambda: raw(socket.AF_INET, T, 4))
attempt('raw6', lambda: raw(socket.AF_INET6, T6, 253))
attempt('packet', packet)
`

let rig: Rig
let capture: Capture
beforeEach(async () => {
  rig = await Rig.open(network([rule('one', { hosts: ['a.example.com'], ports: [80] })]))
  capture = await Capture.open({ texts: [MARKER] })
})
afterEach(async () => {
  await capture.close()
  await rig.close()
})

/** The agent's frames are none; one datagram from the host itself is seen, so that this can fail. */
async function expectNothingLeft(): Promise<void> {
  expect(await capture.seen()).toEqual({ [MARKER]: 0 })
  const socket = createSocket('udp4')
  await new Promise((done) => socket.send(MARKER, 9, '127.0.0.1', done))
  socket.close()
  // More than one: the answer that nobody listens there quotes it.
  expect((await capture.seen())[MARKER]).toBeGreaterThan(0)
}

describe('S32 packets', () => {
  it('of an agent never appear on the host, whatever protocol they are', async () => {
    const said = await rig.run(['python3', '-c', ATTACK])
    expect(said.err).toBe('')
    await expectNothingLeft()
    const results = Object.fromEntries(
      said.out
        .trim()
        .split('\n')
        .map((line) => line.split(' ')),
    )
    expect(results).toMatchObject({
      udp: 'EPERM',
      quic: 'EPERM',
      udp6: 'EPERM',
      mapped: 'EPERM',
      'link-local': 'EPERM',
      'tcp-port': 'ECONNREFUSED',
      'tcp6-port': 'ECONNREFUSED',
      mptcp: 'ENOPROTOOPT',
      icmp: 'EPERM',
      sctp: 'EPERM',
      'ip-in-ip': 'EPERM',
      raw6: 'EPERM',
      // This one reaches the gate, which hears something that is not HTTP.
      'tcp-web': 'ok',
    })
    const reasons = rig.network
      .blocked()
      .filter((row) => row.layer === 'nft')
      .map((row) => row.rule)
    expect(reasons).toEqual(expect.arrayContaining(['udp', 'port', 'icmp', 'other']))
    expect(rig.outside.requests).toEqual([])
  })

  it('go nowhere even when the rules of the namespace are gone', async () => {
    const flush = `import subprocess\nsubprocess.run(['nft', 'flush', 'ruleset'], check=True)\n${ATTACK}`
    const said = await rig.run(['python3', '-c', flush])
    expect(said.out).toContain('udp ok')
    await expectNothingLeft()
  })
})
