import { closeSync, existsSync, openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { pipe } from '../../daemon/kernel/pipe.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import type { RunningBranch } from '../../daemon/sandbox/running-branch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'

const check = needs(root)
const launcher = new Launcher()
const branches: TestBranch[] = []

beforeAll(async () => await warmUp(launcher))
afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

async function agentOf(argv: readonly string[]): Promise<{ branch: TestBranch; agent: RunningBranch }> {
  const branch = makeBranch()
  branches.push(branch)
  const agent = await launcher.start(requestOf(branch, argv))
  agent.output?.resume()
  agent.errors?.resume()
  return { branch, agent }
}

async function begin(branch: TestBranch, agent: RunningBranch, argv: readonly string[]) {
  const held = await agent.exec({ argv, cwd: branch.base, environment: {}, stdio: { kind: 'pipes' } })
  held.output?.resume()
  held.errors?.resume()
  return held
}

describe('commands that are started while the branch is frozen', () => {
  check('hold no thread of the daemon, and go on with the agent', async () => {
    const { branch, agent } = await agentOf(['sleep', '1000'])
    // Twice as many as Node has threads; each of them sleeps until its child has executed.
    const starts = Array.from({ length: 8 }, () => begin(branch, agent, ['true']))
    await agent.freeze()
    const answered = await Promise.race([stat('/').then(() => true), setTimeout(20_000, false)])
    if (!answered) await agent.thaw()
    expect(answered, 'Nothing of the filesystem can be read').toBe(true)
    await expect(begin(branch, agent, ['true'])).rejects.toMatchObject({ code: 'wrong-state' })
    await agent.thaw()
    for (const held of await Promise.all(starts)) expect(await held.exited).toMatchObject({ code: 0 })
    expect(await (await begin(branch, agent, ['true'])).exited).toMatchObject({ code: 0 })
    await agent.kill('signal')
  })
})

describe('an agent that has ended while its output waits for a reader', () => {
  check('takes no command, does not stand still, and gets no cgroup back', async () => {
    const reader = pipe()
    const nothing = openSync('/dev/null', 'r')
    const branch = makeBranch()
    branches.push(branch)
    // More than a pipe holds, twice: the agent's own and that of the caller, who does not read.
    const argv = ['head', '-c', '100000', '/dev/zero']
    const stdio = { kind: 'inherit', fds: [nothing, reader.write, reader.write] } as const
    const agent = await launcher.start(requestOf(branch, argv, { stdio }))
    await expect.poll(() => existsSync(agent.cgroup)).toBe(false)
    for (const asked of [begin(branch, agent, ['true']), agent.freeze(), agent.thaw()])
      await expect(asked).rejects.toMatchObject({ code: 'wrong-state' })
    expect(existsSync(agent.cgroup)).toBe(false)
    for (const fd of [reader.read, reader.write, nothing]) closeSync(fd)
    expect(await agent.exited).toMatchObject({ code: 0 })
  })
})

describe('commands that are started while the agent ends', () => {
  check.for([
    ['by itself', (agent: RunningBranch): void => void agent.input?.end()],
    ['by a signal', (agent: RunningBranch): void => void agent.kill('signal')],
  ] as const)('%s end with it, or are told so', async ([, end]) => {
    const seen = new Set<unknown>()
    for (let round = 0; round < 12; round++) {
      const { branch, agent } = await agentOf(['cat'])
      const starts = Array.from({ length: 4 }, () => begin(branch, agent, ['sleep', '1000']))
      await setTimeout(round)
      end(agent)
      for (const start of await Promise.allSettled(starts)) {
        if (start.status === 'rejected') seen.add((start.reason as { message: string }).message)
        else seen.add((await start.value.exited).signal)
      }
      await agent.exited
      await launcher.sweep(branch.record.id)
    }
    const told = 'The agent of this branch has ended'
    expect([told, 'SIGKILL']).toEqual(expect.arrayContaining([...seen]))
  })
})
