import { once } from 'node:events'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import type { BudgetExceeded, Crossing } from '../../daemon/budget/ledger.ts'
import type { Amounts } from '../../daemon/budget/limits.ts'
import { Meter } from '../../daemon/budget/meter.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'

const check = needs(root)
const launcher = new Launcher()
let branch: TestBranch

beforeAll(async () => await warmUp(launcher))
afterEach(() => branch?.remove())

async function metered(script: string, limits: Amounts, atLimit: 'freeze' | 'kill') {
  branch = makeBranch()
  const agent = await launcher.start(requestOf(branch, ['sh', '-c', script]))
  agent.errors?.resume()
  const crossings: Crossing[] = []
  let meter: Meter | undefined
  const exceeded = new Promise<BudgetExceeded>((resolve) => {
    meter = new Meter(limits, atLimit, {
      readings: async () => agent.readings(),
      freeze: () => agent.freeze(),
      thaw: () => agent.thaw(),
      kill: async () => void (await agent.kill('budget')),
      announce: (crossing) => crossings.push(crossing),
      exceeded: resolve,
      failed: (error) => {
        throw error
      },
      now: () => performance.now(),
    })
    meter.start()
  })
  if (meter === undefined) throw new Error('no meter')
  return { agent, meter, exceeded, crossings }
}

describe('budgets of a real agent', () => {
  check('cpu: frozen at the limit, resumed by an extension, ended as it would have', async () => {
    const burn = 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo done'
    const { agent, meter, exceeded, crossings } = await metered(burn, { cpu: 0.05 }, 'freeze')
    const output = agent.output === undefined ? '' : once(agent.output, 'data')
    expect(await exceeded).toMatchObject({ budget: 'cpu', action: 'freeze', limit: 0.05 })
    expect(crossings.at(-1)).toMatchObject({ percent: 100 })
    // Who asks within some milliseconds of another gets the same answer: the first one must be of the time after the freeze.
    await new Promise((resolve) => setTimeout(resolve, 50))
    const before = agent.readings().cpu
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(agent.readings().cpu).toBe(before)
    expect(await meter.extend('cpu', 60)).toEqual({ resumed: true })
    expect(String((await output)[0])).toBe('done\n')
    expect(await agent.exited).toMatchObject({ code: 0, cause: 'exited' })
    await meter.stop()
  })

  check('processes: a fork bomb is frozen and can be killed', async () => {
    const { agent, meter, exceeded } = await metered('while :; do sleep 100 & done', { pids: 40 }, 'freeze')
    agent.output?.resume()
    expect(await exceeded).toMatchObject({ budget: 'pids' })
    expect(await agent.signal('KILL')).toMatchObject({ survivors: 0 })
    await meter.stop()
    await agent.exited
  })

  check('memory: killed where the profile says so, and the exit says why', async () => {
    const eat = 'x=$(head -c 30000000 /dev/zero | tr "\\0" x); sleep 100'
    const { agent, meter, exceeded } = await metered(eat, { memory: 20_000_000 }, 'kill')
    agent.output?.resume()
    expect(await exceeded).toMatchObject({ budget: 'memory', action: 'kill' })
    expect(await agent.exited).toMatchObject({ signal: 'SIGKILL', cause: 'budget' })
    await meter.stop()
  })
})
