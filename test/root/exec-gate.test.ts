import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'
import { effectOf } from './effect.ts'

const check = needs(root)
const launcher = new Launcher()
let branch: TestBranch

beforeAll(async () => await warmUp(launcher))
afterEach(() => branch?.remove())

const start = async (exec: number, script: string) => {
  branch = makeBranch({ profile: { budgets: { limits: { exec }, atLimit: 'freeze' } } })
  const agent = await launcher.start(requestOf(branch, ['/bin/sh', '-c', script]))
  agent.errors?.resume()
  return agent
}

describe('the exec budget', () => {
  check('counts each program that is started, and nothing else', async () => {
    const agent = await start(100, 'for i in 1 2 3; do /bin/true; done; (:); echo end')
    expect(agent.output === undefined ? '' : await text(agent.output)).toBe('end\n')
    expect(agent.readings().exec).toBe(4)
    await agent.exited
  })

  check('holds the first that is over it, until it is extended', async () => {
    const agent = await start(3, '/bin/true; /bin/true; echo two; /bin/true; echo three')
    const output = agent.output
    if (output === undefined) throw new Error('no output')
    expect(String((await once(output, 'data'))[0])).toBe('two\n')
    while ((agent.readings().exec ?? 0) < 4) await setTimeout(5)
    const rest = text(output)
    agent.extend('exec', 10)
    expect(await rest).toBe('three\n')
    expect(await agent.exited).toMatchObject({ code: 0 })
  })

  check(
    'makes the agent stand still at once: nobody waits for the kernel to freeze what it holds',
    async () => {
      const agent = await start(3, '/bin/true; /bin/true; echo two; /bin/true; echo three')
      const { output } = agent
      if (output === undefined) throw new Error('no output')
      await once(output, 'data')
      while ((agent.readings().exec ?? 0) < 4) await setTimeout(5)
      const late = setTimeout(3000, 'too late')
      expect(await Promise.race([agent.freeze(), late])).not.toBe('too late')
      const rest = text(output)
      agent.extend('exec', 10)
      await agent.thaw()
      expect(await rest).toBe('three\n')
      expect(await agent.exited).toMatchObject({ code: 0 })
    },
  )

  check(
    'less than it takes to find the first program does not hold the start: nobody would be asked for more',
    async () => {
      branch = makeBranch({ profile: { budgets: { limits: { exec: 2 }, atLimit: 'freeze' } } })
      const PATH = '/nowhere:/nothing:/none:/usr/bin:/bin'
      const words = ['sh', '-c', 'echo found; read line; /bin/true; echo on']
      const agent = await launcher.start(requestOf(branch, words, { environment: { PATH } }))
      agent.errors?.resume()
      const { output } = agent
      if (output === undefined) throw new Error('no output')
      expect(String((await once(output, 'data'))[0])).toBe('found\n')
      expect(agent.readings().exec).toBe(4)
      agent.input?.write('\n')
      while ((agent.readings().exec ?? 0) < 5) await setTimeout(5)
      agent.extend('exec', 5)
      expect(await text(output)).toBe('on\n')
      await agent.exited
    },
  )

  check('counts commands that join, and a held one can be killed', async () => {
    const agent = await start(2, 'echo ready; while read line; do :; done')
    if (agent.output !== undefined) await once(agent.output, 'data')
    const request = { cwd: branch.base, environment: {}, stdio: { kind: 'pipes' } } as const
    expect((await effectOf(await agent.exec({ ...request, argv: ['/bin/true'] }))).code).toBe(0)
    const held = agent.exec({ ...request, argv: ['/bin/true'] })
    while ((agent.readings().exec ?? 0) < 3) await setTimeout(5)
    expect(await agent.signal('KILL')).toMatchObject({ survivors: 0 })
    const late = await held
    late.output?.resume()
    late.errors?.resume()
    expect(await late.exited).toMatchObject({ signal: 'SIGKILL' })
    await agent.exited
  })

  check('the time limit of a joined command begins with the call, not with its first program', async () => {
    const agent = await start(2, 'echo ready; while read line; do :; done')
    if (agent.output !== undefined) await once(agent.output, 'data')
    const request = { cwd: branch.base, environment: {}, stdio: { kind: 'pipes' } } as const
    expect((await effectOf(await agent.exec({ ...request, argv: ['/bin/true'] }))).code).toBe(0)
    // Its first program is held: without the limit this waits for an extension that never comes.
    const late = await agent.exec({ ...request, argv: ['/bin/true'], timeoutMillis: 300 })
    late.output?.resume()
    late.errors?.resume()
    expect(await late.exited).toMatchObject({ signal: 'SIGKILL', cause: 'timeout' })
    expect(agent.readings().pids).toBeGreaterThan(0)
    await agent.signal('KILL')
    await agent.exited
  })

  check('does not wait for a held command that was killed: an extension is for those that live', async () => {
    const agent = await start(3, 'echo ready; read line; /bin/true; echo on')
    const { output } = agent
    if (output === undefined) throw new Error('no output')
    await once(output, 'data')
    const request = { cwd: branch.base, environment: {}, stdio: { kind: 'pipes' } } as const
    const joined = await agent.exec({ ...request, argv: ['/bin/sh', '-c', '/bin/true; /bin/true; :'] })
    joined.output?.resume()
    joined.errors?.resume()
    while ((agent.readings().exec ?? 0) < 4) await setTimeout(5)
    await joined.signal('KILL')
    await joined.exited
    while ((agent.readings().exec ?? 0) > 3) await setTimeout(5)
    const rest = text(output)
    agent.input?.write('\n')
    while ((agent.readings().exec ?? 0) < 4) await setTimeout(5)
    agent.extend('exec', 4)
    expect(await rest).toBe('on\n')
    expect(await agent.exited).toMatchObject({ code: 0 })
  })
})
