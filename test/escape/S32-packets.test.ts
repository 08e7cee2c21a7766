import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { Rig } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'

const it = needs(root, program('python3'))
const MARKER = 'puzzled-escape-marker'

/** Every frame on every interface of the host, from here to `stop`; prints those that carry the marker. */
const CAPTURE = `
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, 33, 64 * 1024 * 1024)
print('ready', flush=True)
while True:
    frame = s.recv(65536)
    if b'${MARKER}' in frame: print('seen ' + frame[:60].hex(), flush=True)
`

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
    s.settimeout(2)
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
let capture: ChildProcess
let seen: string[]
beforeEach(async () => {
  rig = await Rig.open(network([rule('one', { hosts: ['a.example.com'], ports: [80] })]))
  seen = []
  capture = spawn('python3', ['-c', CAPTURE], { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise<void>((ready) => {
    capture.stdout?.on('data', (chunk) => {
      const text = String(chunk)
      if (text.includes('ready')) ready()
      seen.push(...text.split('\n').filter((line) => line.startsWith('seen')))
    })
  })
})
afterEach(async () => {
  const ended = new Promise((done) => capture.once('close', done))
  capture.kill('SIGKILL')
  await ended
  await rig.close()
})

/** One datagram from the host itself: shows that the capture runs, and that all before it was looked at. */
async function sendFromHost(): Promise<void> {
  const socket = createSocket('udp4')
  await new Promise((done) => socket.send(MARKER, 9, '127.0.0.1', done))
  socket.close()
  while (seen.length === 0) await new Promise((wait) => setTimeout(wait, 20))
}

describe('S32 packets', () => {
  it('of an agent never appear on the host, whatever protocol they are', async () => {
    const said = await rig.run(['python3', '-c', ATTACK])
    expect(said.err).toBe('')
    await sendFromHost()
    // The host's own datagram, once for each direction of its loopback, and nothing else.
    expect(seen.every((line) => line.includes('7f0000017f000001'))).toBe(true)
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
    await sendFromHost()
    expect(seen.every((line) => line.includes('7f0000017f000001'))).toBe(true)
  })
})
