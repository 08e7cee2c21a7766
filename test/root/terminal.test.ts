import { text } from 'node:stream/consumers'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'

const check = needs(root)
const launcher = new Launcher()
const branches: TestBranch[] = []

beforeAll(async () => await warmUp(launcher))
afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

const start = async (script: string) => {
  const branch = makeBranch()
  branches.push(branch)
  const stdio = { kind: 'pty', columns: 80, rows: 24 } as const
  return await launcher.start(requestOf(branch, ['sh', '-c', script], { stdio }))
}

describe('a terminal', () => {
  check('is the agent’s own and controls it', async () => {
    const agent = await start(
      'tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : </dev/tty && echo controlled; ls /dev/pts',
    )
    if (agent.output === undefined) throw new Error('no output')
    const output = await text(agent.output)
    expect(output).toBe('/dev/pts/0\r\n24 80\r\ncontrolled\r\n0  ptmx\r\n')
    expect(await agent.exited).toMatchObject({ code: 0 })
  })

  check('takes input, sizes and the interrupt key', async () => {
    const agent = await start(
      'trap "echo interrupted" INT; trap "stty size" WINCH; echo ready; read a; echo "got $a"; while :; do sleep 0.05; done',
    )
    let seen = ''
    const waits: { for: string; done: () => void }[] = []
    agent.output?.on('data', (chunk: Buffer) => {
      seen += chunk.toString()
      for (const wait of waits) if (seen.includes(wait.for)) wait.done()
    })
    const sees = (what: string): Promise<void> =>
      new Promise((resolve) => {
        if (seen.includes(what)) resolve()
        else waits.push({ for: what, done: resolve })
      })
    await sees('ready')
    agent.input?.write('word\n')
    await sees('got word')
    agent.resize?.(100, 40)
    await sees('40 100')
    agent.input?.write('\x03')
    await sees('interrupted')
    await agent.signal('KILL')
    expect((await agent.exited).signal).toBe('SIGKILL')
  })

  check('has several readers, of which late ones see what was last written', async () => {
    const agent = await start('echo one; read a; echo two')
    const first = agent.output === undefined ? '' : text(agent.output)
    await new Promise((resolve) => agent.output?.once('data', resolve))
    const late = text(agent.attach().output)
    const gone = agent.attach().output as NodeJS.ReadableStream & { destroy(): void }
    gone.destroy()
    agent.input?.write('\n')
    expect(await late).toContain('one\r\n')
    expect(await late).toContain('two\r\n')
    expect(await first).toBe(await late)
    await agent.exited
  })
})
