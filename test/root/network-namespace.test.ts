import { spawnSync } from 'node:child_process'
import { closeSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { insideNetns } from '../../daemon/kernel/netns.ts'
import { AgentNetns, prepareNetns } from '../../daemon/network/namespace.ts'

const taken = new Set<number>()
const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close()
  taken.clear()
})

function open(ports: readonly number[] = [80, 443]): { fd: number; netns: AgentNetns } {
  const { fd } = prepareNetns()
  closers.push(() => closeSync(fd))
  const netns = AgentNetns.open(fd, ports, [])
  closers.push(() => netns.release())
  const { explicit, transparent, names } = netns.listeners
  const sockets = [
    explicit,
    ...transparent.map((one) => one.fd),
    ...names.udp.map((one) => one.fd),
    ...names.tcp,
  ]
  // One of them may be in a server's hands, which closes it.
  for (const socket of sockets) closers.push(() => taken.has(socket) || closeSync(socket))
  return { fd, netns }
}

/** Runs a program inside the namespace. */
const inside = (fd: number, ...argv: string[]) =>
  spawnSync('nsenter', ['--net=/proc/self/fd/3', ...argv], {
    stdio: ['ignore', 'pipe', 'pipe', fd],
    encoding: 'utf8',
  })

const python = (fd: number, code: string): string => {
  const run = inside(fd, 'python3', '-c', `import socket,errno\nsocket.setdefaulttimeout(2)\n${code}`)
  return `${run.stdout}${run.stderr}`.trim()
}
const attempt = (call: string): string =>
  `try:\n  ${call}\n  print('ok')\nexcept OSError as e:\n  print(errno.errorcode.get(e.errno, str(e)))`

describe('the namespace of an agent', () => {
  it('has loopback alone, and every address is local', () => {
    const { fd } = open()
    const links = JSON.parse(inside(fd, 'ip', '-j', 'link').stdout) as { ifname: string; flags: string[] }[]
    expect(links.map((link) => link.ifname)).toEqual(['lo'])
    expect(links[0]?.flags).toContain('UP')
    expect(inside(fd, 'ip', 'route', 'get', '8.8.8.8').stdout).toContain('local 8.8.8.8 dev lo')
    expect(inside(fd, 'ip', '-6', 'route', 'get', '2606:4700::1').stdout).toMatch(
      /^local 2606:4700::1 .*dev lo/,
    )
  })

  it('leaves the calling thread at home', () => {
    const before = readlinkSync('/proc/thread-self/ns/net')
    const { fd } = open()
    expect(insideNetns(fd, () => readlinkSync('/proc/thread-self/ns/net'))).not.toBe(before)
    expect(readlinkSync('/proc/thread-self/ns/net')).toBe(before)
    expect(() =>
      insideNetns(fd, () => {
        throw new Error('inside')
      }),
    ).toThrow('inside')
    expect(readlinkSync('/proc/thread-self/ns/net')).toBe(before)
  })

  it('brings connections to any address to the listeners, which see where they were going', async () => {
    const { fd, netns } = open()
    const seen: string[] = []
    const server = createServer((socket) => {
      seen.push(`${socket.localAddress} ${socket.localPort}`)
      socket.destroy()
    })
    const listener = netns.listeners.transparent[0]?.fd ?? -1
    taken.add(listener)
    await new Promise<void>((ready) => server.listen({ fd: listener }, ready))
    closers.push(() => server.close())
    const done = (code: string) =>
      new Promise<string>((resolve) => {
        setImmediate(() => resolve(python(fd, code)))
      })
    expect(await done(attempt("socket.create_connection(('8.8.8.8', 80))"))).toBe('ok')
    expect(await done(attempt("socket.create_connection(('2606:4700::1', 80))"))).toBe('ok')
    await expect.poll(() => seen, { timeout: 60_000 }).toEqual(['::ffff:8.8.8.8 80', '2606:4700::1 80'])
  })

  it('answers the rest at once and counts it per reason', () => {
    const { fd, netns } = open()
    const count = (reason: Parameters<ReturnType<AgentNetns['dropped']>['get']>[0]) =>
      netns.dropped().get(reason)
    expect(count('port')).toBe(0)
    expect(python(fd, attempt("socket.create_connection(('8.8.8.8', 22))"))).toBe('ECONNREFUSED')
    expect(count('port')).toBe(1)
    const udp =
      "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('8.8.8.8', 123)); s.send(b'x'); s.send(b'x')"
    // The rule sits where packets leave, so the sender itself hears of it.
    expect(python(fd, attempt(udp))).toBe('EPERM')
    expect(count('udp')).toBeGreaterThan(0)
    const raw =
      "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); s.sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0', ('8.8.8.8', 0))"
    python(fd, attempt(raw))
    expect(count('icmp')).toBe(1)
    const sctp =
      "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132); s.sendto(b'x' * 40, ('8.8.8.8', 0))"
    python(fd, attempt(sctp))
    expect(count('other')).toBe(1)
    const multicast =
      "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('127.0.0.1')); s.sendto(b'x', ('239.1.1.1', 9))"
    python(fd, attempt(multicast))
    expect(count('multicast')).toBe(1)
  })

  it("leaves the agent's own loopback services alone", () => {
    const { fd } = open()
    const code =
      "l = socket.create_server(('127.0.0.1', 5000)); c = socket.create_connection(('127.0.0.1', 5000)); l.accept()"
    expect(python(fd, attempt(code))).toBe('ok')
  })

  it('has no multipath TCP', () => {
    const { fd } = open()
    expect(python(fd, attempt('socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)'))).toMatch(
      /ENOPROTOOPT|EPROTONOSUPPORT/,
    )
  })
})
