import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { program } from '../tier/needs.ts'
import { type DeafFile, deafFile, fuse } from './deaf-filesystem.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'
import { pythonDbus } from './python-client.ts'

const POLL = { timeout: 60_000, interval: 200 }
/** A daemon that waits for a filesystem of the caller's does so for ever. */
const ANSWERED_MILLIS = 20_000
const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))

const { here, it } = onBus('each', program('python3'), fuse)
let place: string
let file: DeafFile | undefined

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'deaf-'))
  chmodSync(place, 0o777)
})
afterEach(async () => {
  await file?.end()
  file = undefined
  rmSync(place, { recursive: true })
})

/** Processes of the daemon's that wait in the kernel for the filesystem. */
const copiers = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandOf(pid).startsWith('puzzled-copy'))

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

it.for([
  [0, 'cat'],
  [1, 'yes'],
] as const)(
  'a filesystem of the caller that does not answer, as descriptor %i, holds up nobody else',
  async ([stream, command]) => {
    file = await deafFile(join(place, 'file'), here.daemon.pid ?? 0)
    const words = [process.execPath, puzzlectl, 'run', '--base', here.project, '--', command]
    const redirected = stream === 0 ? `<>${file.path} >/dev/null` : `</dev/null 1<>${file.path}`
    const outside = here.background(WHO.colleague, ['/usr/bin/head', '-c', '1', file.path])
    const held = here.background(WHO.developer, [
      '/bin/sh',
      '-c',
      `exec "$@" ${redirected} 2>&1`,
      'sh',
      ...words,
    ])
    try {
      await expect
        .poll(async () => (await here.puzzlectl(WHO.colleague, 'run', '--', 'true')).status, POLL)
        .toBe(0)
      await expect.poll(async () => (await here.puzzlectl(WHO.root, 'ls')).out, POLL).toContain('running')
      expect(copiers()).toHaveLength(1)
      expect(await Promise.race([outside.exited, 'it waits']), 'control').toBe('it waits')
      const began = performance.now()
      const { status, out } = await here.puzzlectl(WHO.colleague, 'run', '--', 'echo', 'mine')
      expect([status, out]).toEqual([0, expect.stringContaining('mine')])
      expect(performance.now() - began).toBeLessThan(ANSWERED_MILLIS)

      // It is ended like any other, and so is the daemon.
      const [id = ''] = (await here.puzzlectl(WHO.root, 'ls', '-q')).out.split('\n')
      expect((await here.puzzlectl(WHO.root, 'signal', id, 'KILL')).status).toBe(0)
      await expect.poll(async () => (await here.puzzlectl(WHO.root, 'ls')).out, POLL).not.toContain('running')
      here.daemon.kill('SIGKILL')
      await here.start()
      expect((await here.puzzlectl(WHO.root, 'ls')).status).toBe(0)
    } finally {
      await file.end()
      held.child.kill('SIGKILL')
      await Promise.all([held.exited, outside.exited])
    }
    await expect.poll(copiers, POLL).toEqual([])
  },
)

/** Executes a program and waits in the kernel before it has, for the close of a file; its connection asks meanwhile. */
const EXECUTING = `
import dbus, os, sys, time
place, base, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
bus = dbus.SystemBus()
reading, writing = os.pipe()
for number, end in ((9, reading), (10, writing)): os.dup2(end, number, inheritable=True)
open(place + '/new', 'w').write(str(os.getpid()))
os.rename(place + '/new', place + '/pid')
while not os.path.exists(place + '/go'): time.sleep(0.01)
os.open(place + '/file', os.O_RDONLY | os.O_CLOEXEC)
if os.fork() > 0: os.execv('/bin/sleep', ['sleep', '5'])
time.sleep(1)
number = dbus.Int64
stdio = {'kind': 'inherit', 'fds': dbus.Array([number(9), number(10), number(10)], signature='v')}
request = {'bases': dbus.Array([base], signature='v'), 'command': dbus.Array(['true'], signature='v'), 'cwd': base,
    'afterwards': 'discard', 'stdio': dbus.Dictionary(stdio, signature='sv')}
for _ in range(calls):
    call = dbus.lowlevel.MethodCallMessage('org.puzzled1', '/org/puzzled1', 'org.puzzled1.Manager', 'Run')
    call.append(dbus.Dictionary(request, signature='sv'), signature='a{sv}')
    bus.send_message(call)
bus.flush()
print('asked', flush=True)
while not os.path.exists(place + '/end'): time.sleep(0.05)
`
/** More than the daemon has threads for files. */
const CALLS = 6

describe('a caller that does not get through its execve', () => {
  const { here, it } = onBus('each', fuse, pythonDbus)

  it('holds up nobody else', async () => {
    const attack = ['/usr/bin/python3', '-c', EXECUTING, place, here.project, String(CALLS)]
    const held = here.background(WHO.developer, attack)
    await expect.poll(() => existsSync(join(place, 'pid')), POLL).toBe(true)
    const pid = Number(readFileSync(join(place, 'pid'), 'utf8'))
    file = await deafFile(join(place, 'file'), pid)
    writeFileSync(join(place, 'go'), '')
    try {
      for (const until = performance.now() + 4_000; performance.now() < until; ) {
        const began = performance.now()
        expect((await here.puzzlectl(WHO.colleague, 'run', '--', 'true')).status).toBe(0)
        expect(performance.now() - began).toBeLessThan(ANSWERED_MILLIS)
      }
      // Control: it is still there, and who asks the kernel the wrong question waits for it.
      const asks = here.background(WHO.root, ['/bin/readlink', `/proc/${pid}/ns/pid`])
      expect(await Promise.race([asks.exited, sleep(1_000, 'it waits')]), 'control').toBe('it waits')
      await file.end()
      await asks.exited
    } finally {
      await file.end()
      writeFileSync(join(place, 'end'), '')
      await held.exited
    }
  })
})
