import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect } from 'vitest'
import { workerPath } from '../../daemon/lib/assets.ts'
import { WorkerProcess } from '../../daemon/lib/worker-process.ts'
import { EMPTY_INPUT } from '../../daemon/policy/empty-input.ts'
import { GatePool, POOL_LIMITS } from '../../daemon/policy/gate-pool.ts'
import { loadPolicies, policySources } from '../../daemon/policy/policy-set.ts'
import { needs, root } from '../tier/needs.ts'
import { attackFolder } from './attack.ts'

const check = needs(root)
const ATTACK = readFileSync(fileURLToPath(new URL('attacks/worker.cjs', import.meta.url)), 'utf8')
const shipped = async () => loadPolicies(await policySources({ directory: '/nonexistent' }))
const input = (): ArrayBuffer => new TextEncoder().encode(EMPTY_INPUT).buffer as ArrayBuffer

let pool: GatePool | undefined
afterEach(async () => {
  await pool?.close()
  pool = undefined
})

/** The worker with somebody's code in it. */
function compromised(mode: string): string {
  const file = join(attackFolder(), `worker-${mode}.cjs`)
  const spy = join(attackFolder(), 'spy')
  const source = ATTACK.replace('@GATE@', workerPath('gate')).replace('@MODE@', mode).replace('@SPY@', spy)
  writeFileSync(spy, 'the secret of somebody else', { mode: 0o600 })
  writeFileSync(file, source)
  return file
}

/** What the attack could do, told over the worker's own channel. */
async function actsOf(mode: 'acts' | 'control'): Promise<unknown> {
  const file = compromised(mode)
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(join(attackFolder(), 'spy.socket'), resolve))
  let said: unknown = null
  try {
    await new Promise<void>((resolve) => {
      const worker = new WorkerProcess({
        ...{ file, heapBytes: 2 ** 28, messageBytes: 10_000 },
        message: (text) => {
          if (!text.includes('"connect"')) return
          said = JSON.parse(text)
          worker.kill()
        },
        ended: () => resolve(),
      })
      worker.send({ kind: 'start', memoryPages: 16, policies: [] })
    })
    return said
  } finally {
    server.close()
  }
}

const ACTS = [
  'read',
  'write',
  'list',
  'execute',
  'signal',
  'environment',
  'memory',
  'root',
  'connect',
] as const
const all = (answer: string) => Object.fromEntries(ACTS.map((act) => [act, answer]))

describe('S46 code of an agent in the policy worker', () => {
  check('control: in a worker that keeps its rights, everything succeeds', async () => {
    expect(await actsOf('control')).toEqual(all('OK'))
  })

  check('reaches no file, no process, no socket and no id', async () => {
    expect(await actsOf('acts')).toEqual(all('EPERM'))
    expect(readFileSync(join(attackFolder(), 'spy'), 'utf8')).toBe('the secret of somebody else')
  })

  check('has no capability, no privileges to gain, a filter on every thread, and one way out', async () => {
    pool = await GatePool.start(await shipped(), POOL_LIMITS)
    await pool.evaluate(input())
    const [pid] = pool.workers
    const threads = readdirSync(`/proc/${pid}/task`)
    expect(threads.length).toBeGreaterThan(1)
    for (const thread of threads) {
      const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8')
      for (const set of ['Inh', 'Prm', 'Eff', 'Amb'])
        expect(status).toContain(`Cap${set}:\t${'0'.repeat(16)}`)
      expect(status).toMatch(/^Uid:\t65534\t65534\t65534\t65534$/m)
      expect(status).toMatch(/^Gid:\t65534\t65534\t65534\t65534$/m)
      expect(status).toMatch(/^Groups:\s*$/m)
      expect(status).toMatch(/^NoNewPrivs:\t1$/m)
      expect(status).toMatch(/^Seccomp:\t2$/m)
    }
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toBe('')
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    const foreign = open.filter((target) => !/^(anon_inode:|pipe:|\/dev\/null$)/.test(target))
    expect(foreign).toEqual([expect.stringMatching(/^socket:/)])
  })
})

describe('S46 a policy worker that says what is not in its grammar', () => {
  const LIES: readonly [mode: string, reason: RegExp][] = [
    ['garbage', /a message with 4294967295 bytes beside it/],
    ['huge', /a message of 2147483647 bytes, at most 33554432 are taken/],
    ['text', /a message that is no JSON/],
    ['kind', /malformed at "kind"/],
    ['proto', /malformed at "results\.0"/],
    ['other', /the answer to question 99, asked was 1/],
    ['twice', /2 answers, asked were 1/],
    ['scanned', /"scanned" as the answer to "evaluate"/],
    ['ready', /"ready" in place of an answer/],
    ['silent', /it ended with 0/],
  ]

  check.for(LIES)('%s is refused by its name, and the worker is ended', async ([mode, reason]) => {
    const policies = await shipped()
    pool = await GatePool.start(policies, POOL_LIMITS, compromised(mode))
    const [first] = pool.workers
    await expect(pool.evaluate(input())).rejects.toThrow(reason)
    expect(pool.workers).not.toContain(first)
  })

  check('control: the same worker without the lie is believed', async () => {
    pool = await GatePool.start(await shipped(), POOL_LIMITS)
    expect(await pool.evaluate(input())).toMatchObject([{ output: [{ result: { allow: true } }] }])
  })
})
