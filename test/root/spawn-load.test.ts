import { spawn as spawnProcess } from 'node:child_process'
import { pbkdf2, randomFill } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { describe, expect } from 'vitest'
import { spawn } from '../../daemon/kernel/clone.ts'
import { needs, root } from '../tier/needs.ts'
import { ALL_NAMESPACES, endOf, execute, op, pipe, readAll } from './spawning.ts'

const check = needs(root)

const children = (): string[] =>
  readdirSync('/proc/self/task').flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
  )

const holdings = () => ({
  descriptors: readdirSync('/proc/self/fd').length,
  children: children().length,
  /** The trampoline's stacks are the only mappings of this size that are not heap. */
  mappings: readFileSync('/proc/self/maps', 'utf8').split('\n').length,
  kibibytes: Number(/VmSize:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]),
})

async function spawnMany(count: number, namespaces: typeof ALL_NAMESPACES): Promise<void> {
  const ops = [op('getpid', []), execute('/bin/true')]
  const failing = [op('openat', [-100, Buffer.from('/does/not/exist\0'), 0]), execute('/bin/true')]
  const lane = async (first: number) => {
    for (let index = first; index < count; index += 4) {
      const fails = index % 10 === 0
      const result = await spawn({ namespaces, ops: fails ? failing : ops })
      expect(result.ok).toBe(!fails)
      if (result.ok) expect(endOf(result.pidfd).exitCode).toBe(0)
    }
  }
  await Promise.all([0, 1, 2, 3].map(lane))
}

check(
  '10,000 spawns leave no descriptor, no zombie and no stack',
  async () => {
    await spawnMany(200, ALL_NAMESPACES)
    const before = holdings()
    await spawnMany(10_000, [])
    const after = holdings()
    expect(after.descriptors).toBe(before.descriptors)
    expect(after.children).toBe(before.children)
    // One leaked stack per spawn would be 10,000 mappings and 1.2 GiB; V8's own heap may move by some.
    expect(after.mappings - before.mappings).toBeLessThan(200)
    expect(after.kibibytes - before.kibibytes).toBeLessThan(300_000)
  },
  300_000,
)

check(
  'spawning works while worker threads collect garbage and the thread pool is busy',
  async () => {
    const code = `let kept = []; for (;;) { kept.push(Buffer.alloc(1000)); if (kept.length > 5000) kept = [] }`
    const workers = [0, 1, 2].map(() => new Worker(code, { eval: true }))
    let busy = true
    const hashing = Promise.all(
      [0, 1, 2, 3].map(async () => {
        while (busy) {
          await promisify(pbkdf2)('secret', 'salt', 2000, 64, 'sha512')
          await promisify(randomFill)(new Uint8Array(100_000))
        }
      }),
    )
    try {
      await spawnMany(200, ALL_NAMESPACES)
    } finally {
      busy = false
      await hashing
      await Promise.all(workers.map((worker) => worker.terminate()))
    }
  },
  120_000,
)

check(
  'signals that arrive during the clone are handled by Node, once each and never in the child',
  async () => {
    let handled = 0
    const onSignal = () => handled++
    process.on('SIGUSR2', onSignal)
    const script = `i=0; while [ $i -lt 3000 ]; do kill -USR2 ${process.pid}; i=$((i+1)); done`
    const storm = spawnProcess('sh', ['-c', script], { stdio: 'ignore' })
    const stormed = once(storm, 'exit')
    try {
      await spawnMany(400, ['NEWNS', 'NEWPID'])
      await stormed
    } finally {
      process.off('SIGUSR2', onSignal)
    }
    expect(handled).toBeGreaterThan(0)
    expect(storm.exitCode).toBe(0)
  },
  120_000,
)

check('a signal to the child before it executes ends the child and runs no handler of ours', async () => {
  let handled = 0
  const onSignal = () => handled++
  process.on('SIGUSR2', onSignal)
  const gate = pipe()
  const known = new Set(children())
  const ops = [op('read', [gate.read, Buffer.alloc(8), 8]), execute('/bin/true')]
  const started = spawn({ namespaces: [], ops })
  let born: string | undefined
  while (born === undefined) {
    await new Promise(setImmediate)
    born = children().find((pid) => !known.has(pid))
  }
  process.kill(Number(born), 'SIGUSR2')
  const result = await started
  process.off('SIGUSR2', onSignal)
  closeSync(gate.read)
  closeSync(gate.write)
  expect(result).toMatchObject({ ok: false, index: 0, errnoName: 'SIGUSR2' })
  expect(handled).toBe(0)
})

/** Looks for the child that is being born; on the thread that plans, as a plan would be made. */
function childBesides(known: ReadonlySet<string>): number {
  for (const end = performance.now() + 10_000; performance.now() < end; ) {
    const born = children().find((pid) => !known.has(pid))
    if (born === undefined) continue
    // Long enough for one that does not wait to be gone.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    return Number(born)
  }
  throw new Error('No child is born while its list is made')
}

describe('a child whose list is made beside its birth', () => {
  check('waits for it', async () => {
    const known = new Set(children())
    const output = pipe()
    const list = () => {
      childBesides(known)
      return [op('dup3', [output.write, 1, 0]), execute('/bin/echo', 'planned')]
    }
    const result = await spawn({ namespaces: ALL_NAMESPACES, ops: list })
    if (!result.ok) throw new Error(result.errnoName)
    expect(endOf(result.pidfd).exitCode).toBe(0)
    closeSync(output.write)
    expect(readAll(output.read)).toBe('planned\n')
  })

  check('ends without it when it cannot be made, and nothing is left', async () => {
    const known = new Set(children())
    const before = holdings()
    const malformed = () => {
      childBesides(known)
      return [op('nosuchcall', []), execute('/bin/true')]
    }
    const thrown = () => {
      childBesides(known)
      throw new Error('no plan')
    }
    await expect(spawn({ namespaces: ALL_NAMESPACES, ops: malformed })).rejects.toThrow(/Malformed/)
    await expect(spawn({ namespaces: ALL_NAMESPACES, ops: thrown })).rejects.toThrow('no plan')
    expect(holdings()).toMatchObject({ children: before.children, descriptors: before.descriptors })
  })

  check('can be killed while it waits', async () => {
    const known = new Set(children())
    const killed = () => {
      process.kill(childBesides(known), 'SIGKILL')
      return [op('getpid', []), execute('/bin/true')]
    }
    expect(await spawn({ namespaces: [], ops: killed })).toMatchObject({
      ok: false,
      index: 0,
      errnoName: 'SIGKILL',
    })
  })
})

check('the event loop is free to answer while a call of the child waits', async () => {
  const gate = pipe()
  const word = Buffer.alloc(8)
  const started = spawn({
    namespaces: ALL_NAMESPACES,
    ops: [op('read', [gate.read, word, word.length]), execute('/bin/true')],
  })
  await new Promise((resolve) => setTimeout(resolve, 50))
  writeSync(gate.write, 'answered')
  const result = await started
  closeSync(gate.read)
  closeSync(gate.write)
  if (!result.ok) throw new Error(result.errnoName)
  expect(endOf(result.pidfd).exitCode).toBe(0)
  // What the kernel wrote for the child lies in our memory: it was the child that read it.
  expect(word.toString()).toBe('answered')
})

check('a time namespace and a user namespace can be had too', async () => {
  for (const namespace of ['NEWTIME', 'NEWUSER'] as const) {
    const result = await spawn({ namespaces: [namespace], ops: [execute('/bin/true')] })
    if (!result.ok) throw new Error(`${namespace}: ${result.errnoName}`)
    expect(endOf(result.pidfd).exitCode).toBe(0)
  }
})
