import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { program } from '../tier/needs.ts'
import { deafFile, fuse } from './deaf-filesystem.ts'
import { onBus } from './grounds.ts'
import { type Identity, WHO } from './private-bus.ts'
import { pythonDbus } from './python-client.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const USER = WHO.developer
let place: string

const { here, it } = onBus('all', program('python3'))
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'streams-'))
  chmodSync(place, 0o755)
  chownSync(place, USER.uid, USER.uid)
})
afterEach(() => rmSync(place, { recursive: true }))

/** A shell script of the user in which `run` is what starts agents. */
const shell = (script: string, who: Identity = USER) => {
  const run = `run() { "${process.execPath}" "${puzzlectl}" run --then discard --base "${here.project}" --cwd "${here.project}" -- "$@"; }`
  return here.exec(who, ['/bin/sh', '-c', `cd "${place}"; ${run}; ${script}`])
}

describe('the files of a caller', () => {
  it('are read and written from where they are, and `2>&1` is one', async () => {
    writeFileSync(join(place, 'in'), 'one\ntwo\n')
    const { status } = await shell(
      'exec < in >> out 2>&1; read first; run sh -c "cat; echo three >&2; echo four"',
    )
    expect([status, readFileSync(join(place, 'out'), 'utf8')]).toEqual([
      0,
      expect.stringMatching(/^two\nthree\nfour\n/),
    ])
  })

  it('are not read for a start that fails', async () => {
    writeFileSync(join(place, 'in'), 'line\n')
    for (let time = 0; time < 5; time++) {
      const { out } = await shell('{ run /nonexistent; echo $?; cat; } < in')
      expect(out).toBe('127\nline\n')
    }
  })

  it('that were not written to their end, because somebody ended the copier, are said', async () => {
    const script = 'i=0; while [ $i -lt 60 ]; do echo $i || exit 0; i=$((i+1)); sleep 0.1; done; exit 0'
    const begun = here.background(USER, [
      ...['/bin/sh', '-c', 'exec "$@" > "$0" 2>&1', join(place, 'out'), process.execPath, puzzlectl, 'run'],
      ...['--base', here.project, '--cwd', here.project, '--', 'sh', '-c', `trap '' PIPE; ${script}`],
    ])
    await expect.poll(() => copiers().length, { timeout: 60_000 }).toBe(1)
    await expect
      .poll(() => existsSync(join(place, 'out')) && readFileSync(join(place, 'out')).length)
      .toBeTruthy()
    await here.exec({ uid: USER.uid, groups: [] }, ['/bin/kill', '-KILL', ...copiers()])
    expect((await begun.ended).status).toBe(71)
    expect(readFileSync(join(place, 'out'), 'utf8')).toMatch(/did not take all that was written to it: EIO/)
  })
})

const copiers = (): string[] =>
  readdirSync('/proc').filter((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').startsWith('puzzled-copy')
    } catch {
      return false
    }
  })

describe('a filesystem that a user serves to nobody else', () => {
  const check = fuse === undefined ? it : onBus('all', fuse).it
  check('is read, as by any program of that user', async () => {
    const served = await deafFile(join(place, 'file'), -1, { owner: USER.uid, text: 'from a server\n' })
    try {
      expect((await shell('cat < file', WHO.colleague)).status, 'control').not.toBe(0)
      expect(await shell('run cat < file')).toMatchObject({ status: 0, out: 'from a server\n' })
    } finally {
      await served.end()
    }
  })
})

/** Opens a file of its group's, and waits. */
const HOLDER = `
#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words) {
  int file = open(words[1], O_RDONLY);
  if (file < 0 || dup2(file, 9) < 0 || creat(words[2], 0644) < 0) return 1;
  return sleep(60);
}`
/** Asks the bus over one connection, whose process has become that program meanwhile. */
const ASKS = `
import dbus, os, sys, time
holder, secret, mark, out, base, kind = sys.argv[1:]
bus = dbus.SystemBus()
os.dup2(os.open(out, os.O_RDWR | os.O_CREAT, 0o600), 10)
parent = os.getpid()
if os.fork() > 0: os.execv(holder, [holder, secret, mark])
while not os.path.exists(mark): time.sleep(0.01)
number = dbus.Int64
stdio = {'kind': kind}
if kind == 'inherit': stdio['fds'] = dbus.Array([number(9), number(10), number(10)], signature='v')
request = {'bases': dbus.Array([base], signature='v'), 'command': dbus.Array(['cat' if kind == 'inherit' else 'true'], signature='v'), 'cwd': base,
    'afterwards': 'discard', 'stdio': dbus.Dictionary(stdio, signature='sv')}
try:
    bus.get_object('org.puzzled1', '/org/puzzled1', introspect=False).Run(dbus.Dictionary(request, signature='sv'),
        dbus_interface='org.puzzled1.Manager', timeout=60, signature='a{sv}')
    print('taken', flush=True)
except dbus.exceptions.DBusException as error: print(error.get_dbus_name(), flush=True)
time.sleep(2)
print('out', open(out).read(), flush=True)
os.kill(parent, 9)
`

describe('a caller who has become a program with more rights', () => {
  const missing = [program('gcc'), pythonDbus].filter((reason) => reason !== undefined)
  const check = missing.length === 0 ? it : onBus('all', ...missing).it
  const SECRET_GROUP = 42

  check('shows none of its files, and has none of its rights', async () => {
    const [holder, secret] = [join(place, 'holder'), join(place, 'secret')]
    writeFileSync(`${holder}.c`, HOLDER)
    execFileSync('gcc', ['-o', holder, `${holder}.c`])
    writeFileSync(secret, 'for the group')
    chownSync(secret, 0, SECRET_GROUP)
    chmodSync(secret, 0o640)
    const ask = (mode: number, file: string, name: string, kind = 'inherit') => {
      chownSync(holder, 0, SECRET_GROUP)
      chmodSync(holder, mode)
      const words = [
        holder,
        file,
        join(place, `${name}.mark`),
        join(place, `${name}.out`),
        here.project,
        kind,
      ]
      return here.exec(USER, ['/usr/bin/python3', '-c', ASKS, ...words])
    }
    writeFileSync(join(place, 'open'), 'for everybody')
    expect((await ask(0o755, join(place, 'open'), 'control')).out).toBe('taken\nout for everybody\n')
    expect((await ask(0o2755, secret, 'attack')).out).toBe('org.puzzled1.Error.AccessDenied\nout \n')
    // Nor does an agent get that group.
    expect((await ask(0o755, join(place, 'open'), 'pipes', 'pipes')).out).toBe('taken\nout \n')
    expect((await ask(0o2755, secret, 'group', 'pipes')).out).toBe('org.puzzled1.Error.AccessDenied\nout \n')
  })
})
