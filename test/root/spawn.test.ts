import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { SpawnOp, SpawnRequest } from '../../daemon/contract/spawn.ts'
import { spawn } from '../../daemon/kernel/clone.ts'
import { KernelError, trySyscall } from '../../daemon/kernel/ffi.ts'
import { pidfdGetfd, pidfdOpen, pidfdSendSignal, waitPidfd } from '../../daemon/kernel/pidfd.ts'
import { NR } from '../../daemon/kernel/uapi/index.ts'
import { needs, root } from '../tier/needs.ts'
import { ALL_NAMESPACES, endOf, execute, op, pipe, readAll } from './spawning.ts'

const check = needs(root)

const run = async (request: SpawnRequest) => {
  const result = await spawn(request)
  if (!result.ok) throw new Error(`${result.op.name}: ${result.errnoName}`)
  return endOf(result.pidfd)
}

check('a program runs in six new namespaces and its exit status arrives', async () => {
  const script = 'test "$$" = 1 && test "$(cat /proc/self/status | grep -c nothing)" = 0; exit 7'
  const end = await run({
    namespaces: ALL_NAMESPACES,
    ops: [
      op('mount', [null, Buffer.from('/\0'), null, 0x44000, null]),
      op('mount', [Buffer.from('proc\0'), Buffer.from('/proc\0'), Buffer.from('proc\0'), 0, null]),
      execute('/bin/sh', '-c', script),
    ],
  })
  expect(end).toMatchObject({ exitCode: 7, signal: undefined })
})

check('a result is stored into a later argument and into the bytes of a structure', async () => {
  const output = pipe()
  const text = Buffer.from('through a descriptor\0')
  const file = Buffer.from(`${join(tmpdir(), 'written')}\0`)
  // pwritev's array of {base, length}: the base is a pointer, the length is patched with the stored length.
  const vector = Buffer.alloc(16)
  const ops: SpawnOp[] = [
    { ...op('openat', [-100, file, 0o102, 0o600]), store: 'file' },
    { ...op('write', [{ slot: 'file' }, text, text.length - 1]), store: 'length' },
    op('write', [{ slot: 'file' }, text, { slot: 'length' }]),
    {
      ...op('writev', [output.write, { struct: vector, pointers: [{ offset: 0, to: text }] }, 1]),
      patch: [{ arg: 1, offset: 8, slot: 'length' }],
    },
    op('unlinkat', [-100, file, 0]),
    op('dup3', [{ slot: 'file' }, 0, 0]),
    op('lseek', [0, 0, 0]),
    op('dup3', [output.write, 1, 0]),
    execute('/bin/cat'),
  ]
  const end = await run({ namespaces: [], ops })
  closeSync(output.write)
  expect(end.exitCode).toBe(0)
  expect(readAll(output.read)).toBe('through a descriptor'.repeat(3))
})

check(
  'a child that somebody has stopped before it executed is killed, and named by where it stood',
  async () => {
    const stopping = (signal: number): SpawnOp[] => [
      { ...op('getpid', []), store: 'self' },
      op('kill', [{ slot: 'self' }, signal]),
      execute('/bin/true'),
    ]
    expect(
      (await run({ namespaces: [], ops: stopping(constants.signals.SIGCONT), patienceMillis: 200 })).exitCode,
      'control',
    ).toBe(0)
    const result = await spawn({
      namespaces: [],
      ops: stopping(constants.signals.SIGSTOP),
      patienceMillis: 200,
    })
    expect(result).toMatchObject({ ok: false, index: 1, errnoName: 'SIGKILL' })
  },
)

check('the first call that is not as expected is named, and nothing of the child is left', async () => {
  const request = {
    namespaces: ['NEWNS'] as const,
    ops: [
      op('getpid', []),
      op('openat', [-100, Buffer.from('/does/not/exist\0'), 0]),
      op('kill', [1, 9]),
      execute('/bin/true'),
    ],
  }
  expect(await spawn(request)).toMatchObject({
    ok: false,
    index: 1,
    op: { call: 'openat' },
    result: -2,
    errnoName: 'ENOENT',
  })
})

check('a door that must be locked is tried', async () => {
  const door = { ...op('openat', [-100, Buffer.from('/does/not/exist\0'), 0]), expect: { errno: 'ENOENT' } }
  expect((await run({ namespaces: [], ops: [door, execute('/bin/true')] })).exitCode).toBe(0)
  const open = { ...op('openat', [-100, Buffer.from('/\0'), 0]), expect: { errno: 'EPERM' } }
  const result = await spawn({ namespaces: [], ops: [open, execute('/bin/true')] })
  expect(result).toMatchObject({ ok: false, index: 0, errnoName: 'success' })
  const other = { ...open, args: [-100, Buffer.from('/does/not/exist\0'), 0] }
  const wrong = await spawn({ namespaces: [], ops: [other, execute('/bin/true')] })
  expect(wrong).toMatchObject({ ok: false, index: 0, result: -2, errnoName: 'ENOENT' })
})

check('a program that cannot be executed is the last entry that failed', async () => {
  const result = await spawn({ namespaces: [], ops: [execute('/does/not/exist')] })
  expect(result).toMatchObject({ ok: false, index: 0, errnoName: 'ENOENT' })
})

check('a child that is killed before it executes says by what', async () => {
  const ops = [{ ...op('gettid', []), store: 'me' }, op('kill', [{ slot: 'me' }, 15]), execute('/bin/true')]
  expect(await spawn({ namespaces: [], ops })).toMatchObject({ ok: false, index: 1, errnoName: 'SIGTERM' })
})

check('clone3 itself can fail', async () => {
  const file = openSync('/', 'r')
  const request = { namespaces: [], cgroupFd: file, ops: [execute('/bin/true')] }
  await expect(spawn(request)).rejects.toThrow(KernelError)
  await expect(spawn(request)).rejects.toThrow(/clone3.*EBADF/)
  closeSync(file)
})

check('the status of a signal arrives, and a pidfd outlives its process', async () => {
  const result = await spawn({ namespaces: [], ops: [execute('/bin/sleep', '1000')] })
  if (!result.ok) throw new Error(result.errnoName)
  expect(waitPidfd(result.pidfd)).toBeUndefined()
  expect(pidfdSendSignal(result.pidfd, 0)).toBe(true)
  const second = pidfdOpen(result.pid)
  expect(pidfdSendSignal(result.pidfd, 9)).toBe(true)
  expect(waitPidfd(result.pidfd, { block: true, peek: true })?.signal).toBe('SIGKILL')
  const end = waitPidfd(result.pidfd, { block: true })
  expect(end).toMatchObject({ pid: result.pid, exitCode: undefined, signal: 'SIGKILL' })
  expect(end?.maxRssKiB).toBeGreaterThan(0)
  expect(pidfdSendSignal(second, 9)).toBe(false)
  expect(() => waitPidfd(result.pidfd)).toThrow(/ECHILD/)
  closeSync(second)
  closeSync(result.pidfd)
})

check('a descriptor of another process can be fetched', async () => {
  const given = pipe()
  const ops = [op('dup3', [given.write, 7, 0]), execute('/bin/sleep', '1000')]
  const result = await spawn({ namespaces: [], ops })
  if (!result.ok) throw new Error(result.errnoName)
  const fetched = pidfdGetfd(result.pidfd, 7)
  writeSync(fetched, 'fetched')
  const bytes = Buffer.alloc(16)
  expect(bytes.toString('utf8', 0, readSync(given.read, bytes))).toBe('fetched')
  expect(() => pidfdGetfd(result.pidfd, 99)).toThrow(/EBADF/)
  pidfdSendSignal(result.pidfd, 9)
  endOf(result.pidfd)
  for (const descriptor of [fetched, given.read, given.write]) closeSync(descriptor)
})

check('dispositions are default and no signal is blocked, whatever Node has set', async () => {
  const output = pipe()
  const ops = [op('dup3', [output.write, 1, 0]), execute('/bin/cat', '/proc/self/status')]
  await run({ namespaces: [], ops })
  closeSync(output.write)
  const status = readAll(output.read)
  expect(readFileSync('/proc/self/status', 'utf8')).not.toMatch(/SigIgn:\t0{16}/)
  expect(status).toMatch(/SigIgn:\t0{16}/)
  expect(status).toMatch(/SigBlk:\t0{16}/)
  expect(status).toMatch(/SigCgt:\t0{16}/)
})

check('the parent keeps its own signal mask', async () => {
  const mask = () => /SigBlk:\t(\w+)/.exec(readFileSync('/proc/thread-self/status', 'utf8'))?.[1]
  const before = mask()
  await run({ namespaces: [], ops: [execute('/bin/true')] })
  expect(mask()).toBe(before)
  expect(trySyscall(NR.getpid)).toBe(process.pid)
})
