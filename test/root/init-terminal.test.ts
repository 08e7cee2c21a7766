import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect } from 'vitest'
import type { SpawnOp } from '../../daemon/contract/spawn.ts'
import { syscall } from '../../daemon/kernel/ffi.ts'
import { initExecutable } from '../../daemon/kernel/init-program.ts'
import { NR, TIOCGPTPEER, TIOCSPTLCK } from '../../daemon/kernel/uapi/index.ts'
import { errnoOf } from '../../daemon/lib/errors.ts'
import { needs, root } from '../tier/needs.ts'
import { finish, nextRecord, op, startInit } from './spawning.ts'

const check = needs(root)
// Made once for the whole process.
beforeAll(() => void initExecutable())
const { O_RDWR, O_NOCTTY, O_NONBLOCK } = constants

/** A terminal that nobody has yet, and what makes it the streams of an init that leads a session. */
function terminal(): { main: number; side: number; before: SpawnOp[] } {
  const main = openSync('/dev/ptmx', O_RDWR | O_NOCTTY | O_NONBLOCK)
  syscall('ioctl', NR.ioctl, main, TIOCSPTLCK, Buffer.alloc(4))
  const side = syscall('ioctl', NR.ioctl, main, TIOCGPTPEER, O_RDWR | O_NOCTTY)
  syscall('fchmod', NR.fchmod, side, 0o666)
  const before = [op('setsid', []), ...[0, 1, 2].map((target) => op('dup3', [side, target, 0]))]
  return { main, side, before }
}

/** What is shown from now on until it matches, or five seconds have passed. */
async function shownOn(main: number, pattern: RegExp): Promise<string> {
  const piece = Buffer.alloc(1000)
  const until = performance.now() + 5000
  let shown = ''
  while (!pattern.test(shown) && performance.now() < until) {
    try {
      shown += piece.toString('utf8', 0, readSync(main, piece))
    } catch (error) {
      if (errnoOf(error) !== 'EAGAIN') throw error
      await sleep(10)
    }
  }
  expect(shown).toMatch(pattern)
  return shown
}

check('modes are as at first, and ^C in a pause is the end', async () => {
  const { main, side, before } = terminal()
  const script = 'echo typed >/dev/tty; stty -a | grep -o -- "-*isig"; stty raw -echo; exit 3'
  const init = await startInit(['sh', '-c', script], { flags: 'tf', before })
  for (let pauses = 0; pauses < 2; ) if (nextRecord(init.status)[0] === 'again') pauses++
  writeSync(main, '\x03')
  const { end } = finish(init)
  expect(end.exitCode).toBe(3)
  expect(await shownOn(main, /isig.*isig/s)).toMatch(/^typed\r\nisig\r\ntyped\r\nisig\r\n/)
  closeSync(side)
  closeSync(main)
})

check('^Z, or reading in the background, does not stop an agent that nobody could let go on', async () => {
  const { main, side, before } = terminal()
  // The second line is asked for while a group that is gone has the terminal.
  const script = `import os, signal
print('ready', flush=True); print('got', input(), flush=True)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0: os.setpgid(0, 0); os.tcsetpgrp(0, os.getpgrp()); os._exit(0)
os.waitpid(child, 0); print('away', flush=True); print('got', input(), flush=True)`
  const init = await startInit(['python3', '-c', script], { flags: 'tf', before })
  try {
    await shownOn(main, /ready/)
    writeSync(main, '\x1a')
    await sleep(100)
    writeSync(main, 'one\n')
    await shownOn(main, /got one.*away/s)
    writeSync(main, 'two\n')
    await shownOn(main, /got two/)
    // Before the terminal goes: that would be a signal to whoever still runs.
    expect(finish(init).end.exitCode).toBe(0)
  } finally {
    closeSync(main)
    closeSync(side)
  }
})

check('what an agent did to its streams does not hold up the next start', async () => {
  const { main, side, before } = terminal()
  const script = `import fcntl, os, termios
if fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK: os._exit(9)
open('/dev/tty').close(); print('turn', flush=True)
fcntl.fcntl(0, fcntl.F_SETFL, os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(0, termios.TIOCEXCL); termios.tcflow(0, termios.TCOOFF); os._exit(3)`
  // Root may open a terminal that is somebody's alone.
  const unprivileged = [op('setresgid', [65_534, 65_534, 65_534]), op('setresuid', [65_534, 65_534, 65_534])]
  const all = [...before, ...unprivileged]
  const init = await startInit(['python3', '-c', script], { flags: 'tf1', before: all })
  try {
    await shownOn(main, /turn.*turn/s)
    expect(finish(init)).toMatchObject({ records: { again: 3 << 8, ended: 3 << 8 } })
  } finally {
    closeSync(main)
    closeSync(side)
  }
})
