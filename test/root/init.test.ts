import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeAll, expect } from 'vitest'
import { syscall, trySyscall } from '../../daemon/kernel/ffi.ts'
import { initExecutable } from '../../daemon/kernel/init-program.ts'
import { pidfdSendSignal } from '../../daemon/kernel/pidfd.ts'
import { F_SETFD, NR, TIOCGPTPEER, TIOCSPTLCK } from '../../daemon/kernel/uapi/index.ts'
import { needs, root } from '../tier/needs.ts'
import { endOf, finish, nextRecord, op, pipe, readAll, startInit } from './spawning.ts'

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

/** Says its turn in a file that outlives it, then does what its number says. */
const turns = (...acts: readonly string[]): string =>
  `read n 2>/dev/null <$0; n=$((n+1)); echo $n >$0; case $n in ${acts.map((act, index) => `${index + 1}) ${act};;`).join(' ')} esac`

async function restarted(
  flags: string,
  ...acts: readonly string[]
): Promise<ReturnType<typeof finish> & { turns: number }> {
  const file = join(mkdtempSync(join(tmpdir(), 'turns-')), 'n')
  writeFileSync(file, '0\n')
  const ended = finish(await startInit(['sh', '-c', turns(...acts), file], { flags }))
  const count = Number(readFileSync(file, 'utf8'))
  rmSync(dirname(file), { recursive: true })
  return { ...ended, turns: count }
}

check('an agent that failed is started again until it ends well, or as often as it may', async () => {
  const well = await restarted('-f', 'exit 3', 'kill -SEGV $$', 'exit 0', 'exit 9')
  expect(well).toMatchObject({ turns: 3, end: { exitCode: 0 }, records: { ended: 0 } })
  const often = await restarted('-f2', 'exit 1', 'exit 2', 'exit 3', 'exit 4')
  expect(often).toMatchObject({ turns: 3, end: { exitCode: 3 } })
  expect((await restarted('-a1', 'exit 0', 'exit 0', 'exit 7')).turns, 'always').toBe(2)
  expect((await restarted('-f', 'exit 0', 'exit 7')).turns, 'a good end').toBe(1)
  expect((await restarted('-', 'exit 1', 'exit 7')).turns, 'control: without it').toBe(1)
})

check('what ends by a signal that asks for it has ended for good', async () => {
  for (const name of ['TERM', 'INT', 'HUP', 'QUIT'])
    expect(await restarted('-a1', `kill -${name} $$`, 'exit 7'), name).toMatchObject({ turns: 1 })
  expect((await restarted('-a1', 'kill -USR1 $$', 'exit 7', 'exit 8')).turns, 'control').toBe(2)
})

check('each pause is twice the last one, and is told with the status before it', async () => {
  const began = performance.now()
  const init = await startInit(['sh', '-c', 'exit 3'], { flags: '-f4' })
  const said = Array.from({ length: 5 * 4 + 4 * 3 }, () => nextRecord(init.status)).map(
    ([kind, value]) => `${kind} ${value}`,
  )
  const took = performance.now() - began
  finish(init)
  expect(said.filter((line) => /pause|again/.test(line))).toEqual(
    [100, 200, 400, 800].flatMap((pause) => [`pauseMillis ${pause}`, `again ${3 << 8}`, 'pauseMillis 0']),
  )
  expect(took).toBeGreaterThan(1500)
})

check('nothing of the last time runs beside the next', async () => {
  const output = pipe()
  const file = join(mkdtempSync(join(tmpdir(), 'turns-')), 'n')
  writeFileSync(file, '0\n')
  const left = 'setsid sleep 1000 & exit 1'
  const look = 'ps -e -o comm= | grep -c sleep; ls /proc/$$/fd; cat /proc/self/status | grep Sig[BIC]'
  const init = await startInit(['sh', '-c', turns(left, look), file], {
    flags: '-f',
    before: [op('dup3', [output.write, 1, 0]), op('fcntl', [0, F_SETFD, 0]), op('fcntl', [2, F_SETFD, 0])],
  })
  closeSync(output.write)
  expect(finish(init).end.exitCode).toBe(0)
  rmSync(dirname(file), { recursive: true })
  expect(readAll(output.read)).toMatch(/^0\n0\n1\n2\nSigBlk:\t0{16}\nSigIgn:\t0{16}\nSigCgt:\t0{16}\n$/)
})

check('the next start waits until the last of it is gone, however long that takes', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'turns-')), 'n')
  writeFileSync(file, '0\n')
  const look = 'ps -e -o comm= | grep -q sleep && exit 9; exit 0'
  const words = ['sh', '-c', turns('sleep 1000 & wait', look), file]
  const init = await startInit(words, { flags: '-f1' })
  // Somebody traces it from outside: killed, it stands in its exit until that one lets go.
  const tracer = spawnSync('python3', ['-c', HOLDS_EXIT, String(init.pid)], {
    encoding: 'utf8',
    timeout: 20_000,
  })
  expect([tracer.stdout, tracer.stderr]).toEqual(['held\n', ''])
  const { records, end } = finish(init)
  rmSync(dirname(file), { recursive: true })
  expect([records.again, end.exitCode]).toEqual([signals.SIGKILL, 0])
})

const HOLDS_EXIT = `import ctypes, os, signal, sys, time
def children(pid): return open(f'/proc/{pid}/task/{pid}/children').read().split()
def kin(): return [p for a in children(sys.argv[1]) for p in children(a) if '1000' in open(f'/proc/{p}/cmdline').read().split('\\0')]
while not kin(): time.sleep(.01)
left = int(kin()[0])
assert ctypes.CDLL(None).ptrace(0x4206, left, None, ctypes.c_void_p(0x40)) == 0
os.kill(int(children(sys.argv[1])[0]), signal.SIGKILL)
_, status = os.waitpid(left, 0)
assert status >> 8 == 5 | 6 << 8, hex(status)
time.sleep(.4); print('held')`

check('what came into a pause and stays does not hold up the next start', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'turns-')), 'n')
  writeFileSync(file, '0\n')
  const words = ['sh', '-c', turns('exit 1', 'exit 1', 'exit 1', 'exit 1', 'exit 0'), file]
  const init = await startInit(words, { flags: '-f' })
  for (let pauses = 0; pauses < 4; ) if (nextRecord(init.status)[0] === 'again') pauses++
  const began = performance.now()
  const joined = ['-t', String(init.pid), '-p', 'sh', '-c', 'setsid sleep 15 <&- >&- 2>&- & exit 0']
  expect(spawnSync('nsenter', joined, { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  expect(finish(init).end.exitCode).toBe(0)
  expect(performance.now() - began).toBeLessThan(10_000)
  rmSync(dirname(file), { recursive: true })
})

check('TERM in a pause is the end, with the status that it had; what is held as long is not', async () => {
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1'] as const) {
    const init = await startInit(['sh', '-c', 'exit 5'], { flags: '-f2' })
    while (nextRecord(init.status)[0] !== 'again');
    pidfdSendSignal(init.pidfd, signals[name])
    const { records, end } = finish(init)
    expect(end.exitCode).toBe(5)
    expect('started' in records, name).toBe(name === 'SIGUSR1')
  }
})

check('TERM to one that goes on, and ends later with a failure, is the end of it', async () => {
  const output = pipe()
  const init = await startInit(['sh', '-c', 'trap : TERM; echo ready; sleep 0.3; sleep 0.3; exit 5'], {
    flags: '-f1',
    before: [op('dup3', [output.write, 1, 0])],
  })
  closeSync(output.write)
  const first = Buffer.alloc(6)
  syscall('read', NR.read, output.read, first, first.length)
  pidfdSendSignal(init.pidfd, signals.SIGTERM)
  expect(finish(init).records).toMatchObject({ ended: 5 << 8 })
  expect(readAll(output.read), 'started once').toBe('')
})

check('a program that is gone at its next start is the end, with its errno', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'turns-')), 'program')
  writeFileSync(file, '#!/bin/sh\nrm "$0"; exit 3\n', { mode: 0o755 })
  const { records, end } = finish(await startInit([file], { flags: '-f' }))
  rmSync(dirname(file), { recursive: true })
  expect(records).toMatchObject({ again: 3 << 8, execFailed: constants.errno.ENOENT })
  expect(end.exitCode).toBe(127)
})

check('nobody who could hear of it: an agent is not started again', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'turns-')), 'n')
  writeFileSync(file, '0\n')
  const init = await startInit(['sh', '-c', turns('sleep 0.1; exit 1', 'exit 2'), file], { flags: '-f' })
  closeSync(init.status)
  expect(endOf(init.pidfd).exitCode).toBe(1)
  expect(readFileSync(file, 'utf8')).toBe('1\n')
  const paused = await startInit(['sh', '-c', turns('', 'exit 3', 'exit 4'), file], { flags: '-f' })
  while (nextRecord(paused.status)[0] !== 'again');
  closeSync(paused.status)
  expect(endOf(paused.pidfd).exitCode, 'killed in the pause').toBe(3)
  rmSync(dirname(file), { recursive: true })
})

check('wrong arguments end init before it does anything', async () => {
  const wrong = [
    startInit([]),
    ...['x', '', '-x', 't5', '-fx', '-a-1', '--'].map((flags) => startInit(['true'], { flags })),
    // It would end what is not its own.
    startInit(['true'], { flags: '-f', namespaces: [] }),
  ]
  for (const init of await Promise.all(wrong)) {
    expect(finish(init)).toMatchObject({ records: {}, end: { exitCode: 125 } })
  }
})

check('the memory file of init is sealed', () => {
  const path = `/proc/self/fd/${initExecutable()}`
  expect(readFileSync(path).subarray(1, 4).toString()).toBe('ELF')
  const bytes = Buffer.from('x')
  expect(trySyscall(NR.write, initExecutable(), bytes, 1)).toBe(-constants.errno.EPERM)
  expect(trySyscall(NR.ftruncate, initExecutable(), 0)).toBe(-constants.errno.EPERM)
})
