import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect } from 'vitest'
import { syscall, trySyscall } from '../../daemon/kernel/ffi.ts'
import { initExecutable } from '../../daemon/kernel/init-program.ts'
import { pidfdSendSignal, waitPidfd } from '../../daemon/kernel/pidfd.ts'
import { F_SETFD, NR, TIOCGPTPEER, TIOCSPTLCK } from '../../daemon/kernel/uapi/index.ts'
import { needs, root } from '../tier/needs.ts'
import { finish, nextRecord, op, pipe, readAll, startInit } from './spawning.ts'

const check = needs(root)
const { signals } = constants
/** Where an ELF header says for which processor it is. */
const E_MACHINE = 18

// The sealed copy of init is made once per process and stays open.
beforeAll(() => void initExecutable())

check('init is PID 1, reports the start, the exit status and what was used', async () => {
  const init = await startInit([
    'sh',
    '-c',
    'test $PPID = 1 && i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 9',
  ])
  const { records, end } = finish(init)
  expect(records).toMatchObject({ started: 2, ended: 9 << 8 })
  expect((records.userMillis ?? 0) + (records.systemMillis ?? 0)).toBeGreaterThan(0)
  expect(records.maxRssKiB).toBeGreaterThan(500)
  expect(end).toMatchObject({ exitCode: 9, signal: undefined })
})

check('an agent that a signal ends is reported with that signal', async () => {
  const { records, end } = finish(await startInit(['sh', '-c', 'kill -SEGV $$']))
  expect((records.ended ?? 0) & 0x7f).toBe(signals.SIGSEGV)
  expect(end.exitCode).toBe(128 + signals.SIGSEGV)
})

check('a command that is in no PATH, or may not be executed, is told apart', async () => {
  const folder = join(tmpdir(), 'bin')
  mkdirSync(folder)
  writeFileSync(join(folder, 'plain'), 'text')
  const missing = finish(await startInit(['no-such-command']))
  const plain = finish(await startInit(['plain'], { environment: [`PATH=/nowhere:${folder}:/bin`] }))
  const file = finish(await startInit([join(folder, 'plain', 'x')]))
  rmSync(folder, { recursive: true })
  expect(missing.records).toEqual({ execFailed: constants.errno.ENOENT })
  expect(missing.end.exitCode).toBe(127)
  expect(plain.records).toEqual({ execFailed: constants.errno.EACCES })
  expect(plain.end.exitCode).toBe(126)
  expect(file.records).toEqual({ execFailed: constants.errno.ENOTDIR })
})

check('PATH is searched in order, with its holes, and a script without #! goes to the shell', async () => {
  const [first, second] = [join(tmpdir(), 'first'), join(tmpdir(), 'second')]
  for (const [folder, status] of [
    [first, 3],
    [second, 4],
  ] as const) {
    mkdirSync(folder)
    writeFileSync(join(folder, 'tool'), `exit $(($# + ${status}))\n`)
    chmodSync(join(folder, 'tool'), 0o755)
  }
  const PATH = `PATH=/nowhere:/etc/passwd:${'x'.repeat(5000)}:${first}:${second}`
  const inPath = finish(await startInit(['tool', 'a', 'b'], { environment: ['PATHS=/bin', PATH] }))
  const direct = finish(await startInit([join(second, 'tool'), 'a'], { environment: [] }))
  for (const folder of [first, second]) rmSync(folder, { recursive: true })
  expect(inPath.end.exitCode).toBe(5)
  expect(direct.end.exitCode).toBe(5)
})

check('a program of another processor, or the beginning of one, does not go to the shell', async () => {
  const folder = join(tmpdir(), 'programs')
  mkdirSync(folder)
  const run = async (bytes: Uint8Array): Promise<ReturnType<typeof finish>> => {
    const path = join(folder, 'program')
    writeFileSync(path, bytes, { mode: 0o755 })
    return finish(await startInit([path]))
  }
  const whole = readFileSync(process.execPath).subarray(0, 4096)
  const other = Buffer.from(whole)
  other[E_MACHINE] = 0xff
  for (const bytes of [other, whole.subarray(0, 100)])
    expect((await run(bytes)).records).toEqual({ execFailed: constants.errno.ENOEXEC })
  const text = Buffer.from('exit 6\n\0')
  expect((await run(text)).end.exitCode, 'control: a NUL behind the first line').toBe(6)
  expect((await run(Buffer.alloc(0))).end.exitCode, 'control: an empty script').toBe(0)
  rmSync(folder, { recursive: true })
})

check('the agent leads a session of its own, with clean signals and three descriptors', async () => {
  const output = pipe()
  const init = await startInit(['sh', '-c', 'cat /proc/$$/stat /proc/self/status; ls /proc/$$/fd; env'], {
    environment: ['PATH=/usr/bin:/bin', 'ONLY=this'],
    before: [
      op('dup3', [output.write, 1, 0]),
      op('dup3', [output.write, 50, 0]),
      op('fcntl', [0, F_SETFD, 0]),
      op('fcntl', [2, F_SETFD, 0]),
    ],
  })
  closeSync(output.write)
  expect(finish(init).end.exitCode).toBe(0)
  const shown = readAll(output.read)
  const [pid, , , , group, session] = shown.split(' ')
  expect([group, session]).toEqual([pid, pid])
  expect(shown).toMatch(/SigBlk:\t0{16}\nSigIgn:\t0{16}\nSigCgt:\t0{16}/)
  expect(shown).toMatch(/\n0\n1\n2\n(?!\d)/)
  expect(shown).toContain('ONLY=this')
})

check('signals to init reach the process group of the agent', async () => {
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const) {
    const output = pipe()
    const script = `trap 'echo got ${name}; exit 5' ${name.slice(3)}; echo ready; while :; do sleep 0.01; done`
    const init = await startInit(['sh', '-c', script], { before: [op('dup3', [output.write, 1, 0])] })
    closeSync(output.write)
    const first = Buffer.alloc(6)
    syscall('read', NR.read, output.read, first, first.length)
    pidfdSendSignal(init.pidfd, signals[name])
    expect(finish(init).end.exitCode).toBe(5)
    expect(readAll(output.read)).toBe(`got ${name}\n`)
  }
})

check('orphans are reaped, and what is left dies with the agent', async () => {
  const output = pipe()
  // However long init waits for its turn: zombies that nobody reaps stay.
  const zombies =
    'n=0; while z=$(ps -e -o stat= | grep -c Z); [ $z != 0 -a $n -lt 300 ]; do n=$((n+1)); sleep 0.2; done'
  const script = `(sleep 0.05 & sleep 0.05 &) ; sleep 0.3; ${zombies}; echo $z; sleep 1000 & exit 0`
  const init = await startInit(['sh', '-c', script], { before: [op('dup3', [output.write, 1, 0])] })
  closeSync(output.write)
  const { records } = finish(init)
  expect(records.ended).toBe(0)
  // EOF comes only when the sleep that the agent left behind is gone too.
  expect(readAll(output.read)).toBe('0\n')
})

check('the death of init ends everything in its namespace', async () => {
  const output = pipe()
  const script = 'setsid sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & echo ready; trap "" TERM; wait'
  const init = await startInit(['sh', '-c', script], { before: [op('dup3', [output.write, 1, 0])] })
  closeSync(output.write)
  const first = Buffer.alloc(6)
  syscall('read', NR.read, output.read, first, first.length)
  // The agent may speak before init has come to say that it started it.
  expect(nextRecord(init.status)).toEqual(['started', 2])
  pidfdSendSignal(init.pidfd, signals.SIGKILL)
  const { records, end } = finish(init)
  expect(end.signal).toBe('SIGKILL')
  expect(records).toEqual({})
  expect(readAll(output.read)).toBe('')
})

check('the agent cannot end init, and cannot reach its records', async () => {
  const output = pipe()
  const script = `kill -KILL 1; kill -STOP 1
    (echo forged >&100) 2>/dev/null && exit 1
    (echo forged >/proc/$$/fd/1) || exit 2
    (echo forged >/proc/1/fd/100) && exit 3
    cat /proc/1/environ && exit 4; exit 6`
  const before = [
    op('dup3', [output.write, 1, 0]),
    op('dup3', [output.write, 2, 0]),
    op('fchown', [output.write, 1000, 1000]),
    op('setresgid', [1000, 1000, 1000]),
    op('setresuid', [1000, 1000, 1000]),
  ]
  const { records } = finish(await startInit(['sh', '-c', script], { before }))
  closeSync(output.write)
  expect(records).toMatchObject({ started: 2, ended: 6 << 8 })
  expect(readAll(output.read)).toMatch(
    /^forged\n.*\/proc\/1\/fd\/100: Permission denied\n.*Permission denied\n$/,
  )
})

check('outside of a PID namespace init does the same for its one child', async () => {
  const init = await startInit(['sh', '-c', 'sleep 0.05; exit 3'], { namespaces: [] })
  expect(nextRecord(init.status)[0]).toBe('started')
  const { records, end } = finish(init)
  expect(records.ended).toBe(3 << 8)
  expect(end.exitCode).toBe(3)
})

check('a terminal becomes the controlling terminal of the agent', async () => {
  const main = openSync('/dev/ptmx', 'r+')
  syscall('ioctl', NR.ioctl, main, TIOCSPTLCK, Buffer.alloc(4))
  const side = syscall('ioctl', NR.ioctl, main, TIOCGPTPEER, 0o2 | 0o400)
  const script = 'echo typed >/dev/tty && read answer </dev/tty && test "$answer" = yes && exit 4'
  const before = [0, 1, 2].map((target) => op('dup3', [side, target, 0]))
  const init = await startInit(['sh', '-c', script], { flags: 't', before })
  closeSync(side)
  writeSync(main, 'yes\n')
  const { end } = finish(init)
  closeSync(main)
  expect(end.exitCode).toBe(4)
  const without = finish(await startInit(['sh', '-c', 'echo x 2>/dev/null >/dev/tty || exit 5']))
  expect(without.end.exitCode).toBe(5)
  const nothing = openSync('/dev/null', 'r')
  const notTerminal = finish(await startInit(['true'], { flags: 't', before: [op('dup3', [nothing, 0, 0])] }))
  closeSync(nothing)
  expect(notTerminal.records).toEqual({ execFailed: constants.errno.ENOTTY })
})

check('wrong arguments end init before it does anything', async () => {
  for (const words of [[], ['--', 'x']]) {
    const init = await startInit(words)
    closeSync(init.status)
    await sleep(20)
    expect(waitPidfd(init.pidfd, { block: true, peek: true })?.exitCode).toBeGreaterThan(0)
    pidfdSendSignal(init.pidfd, 0)
    waitPidfd(init.pidfd, { block: true })
    closeSync(init.pidfd)
  }
})

check('the memory file of init is sealed', () => {
  const path = `/proc/self/fd/${initExecutable()}`
  expect(readFileSync(path).subarray(1, 4).toString()).toBe('ELF')
  const bytes = Buffer.from('x')
  expect(trySyscall(NR.write, initExecutable(), bytes, 1)).toBe(-constants.errno.EPERM)
  expect(trySyscall(NR.ftruncate, initExecutable(), 0)).toBe(-constants.errno.EPERM)
})
