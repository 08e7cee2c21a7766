import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { attack, outside, parseReport, startOutside } from './attack.ts'
import { branchFor, inBranch } from './harness.ts'

const runnable = root ?? program('gcc')
const check = needs(runnable)

/** Where services listen on real hosts. The room has a /run of its own for the length of this file. */
const STREAM = [
  '/run/docker.sock',
  '/run/podman/podman.sock',
  '/run/user/1000/podman/podman.sock',
  '/run/containerd/containerd.sock',
  '/run/libvirt/libvirt-sock',
  '/run/dbus/system_bus_socket',
  '/run/user/1000/bus',
  '/run/systemd/private',
  '/run/systemd/journal/stdout',
  '/run/user/1000/gnupg/S.gpg-agent',
  '/run/user/1000/wayland-0',
  '/run/snapd.socket',
  '/run/puzzled/puzzled.sock',
]
const DATAGRAM = ['/run/systemd/journal/socket', '/run/systemd/journal/dev-log', '/run/systemd/notify']
const ABSTRACT = '@/tmp/.X11-unix/X0'
const ABSTRACT_DATAGRAM = '@puzzled-datagram'

let agentSocket = ''
let services: ReturnType<typeof startOutside> | undefined

beforeAll(async () => {
  if (runnable !== undefined) return
  execFileSync('mount', ['-t', 'tmpfs', 'run', '/run'])
  agentSocket = join(mkdtempSync(join(tmpdir(), 'ssh-')), 'agent.1')
  for (const path of [...STREAM, ...DATAGRAM]) mkdirSync(dirname(path), { recursive: true })
  services = startOutside([
    attack('listen'),
    'stream',
    ...STREAM,
    agentSocket,
    ABSTRACT,
    'dgram',
    ...DATAGRAM,
    ABSTRACT_DATAGRAM,
  ])
  while (!services.output().includes('ready')) await sleep(10)
})

afterAll(async () => {
  services?.child.kill()
  await services?.ended
  if (runnable !== undefined) return
  rmSync(dirname(agentSocket), { recursive: true })
  execFileSync('umount', ['/run'])
})

const all = (paths: readonly string[], answer: string) =>
  Object.fromEntries(paths.map((path) => [path, answer]))

describe('S42 sockets of the host', () => {
  check('control: outside, all of them answer', () => {
    const streams = [...STREAM, agentSocket, ABSTRACT]
    expect(parseReport(outside([attack('probe'), 'connect', ...streams]))).toEqual(all(streams, 'OK'))
    const datagrams = [...DATAGRAM, ABSTRACT_DATAGRAM]
    expect(parseReport(outside([attack('probe'), 'sendto', ...datagrams]))).toEqual(all(datagrams, 'OK'))
  })

  check('in a branch there is none of them, to connect or to send to', async () => {
    const paths = [...STREAM, ...DATAGRAM, agentSocket]
    for (const how of ['connect', 'sendto']) {
      const { report } = await inBranch('probe', [how, ...paths])
      expect(report).toEqual(all(paths, 'ENOENT'))
    }
  })

  check('abstract names are those of the own network namespace', async () => {
    const names = [ABSTRACT, ABSTRACT_DATAGRAM]
    for (const how of ['connect', 'sendto']) {
      const { report } = await inBranch('probe', [how, ...names])
      expect(report).toEqual(all(names, 'ECONNREFUSED'))
    }
  })

  check('a socket that lies in a base is a name without anybody behind it', async () => {
    const branch = branchFor()
    const path = join(branch.base, 'service.sock')
    const service = startOutside([attack('listen'), 'stream', path])
    while (!service.output().includes('ready')) await sleep(10)
    expect(parseReport(outside([attack('probe'), 'connect', path]))).toEqual({ [path]: 'OK' })
    const { report } = await inBranch('probe', ['connect', path], { reuse: branch })
    service.child.kill()
    await service.ended
    expect(report).toEqual({ [path]: 'ECONNREFUSED' })
  })
})
