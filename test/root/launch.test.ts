import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { cgroupUsage } from '../../daemon/kernel/cgroup.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, run, type TestBranch, warmUp } from './branch.fixture.ts'

const check = needs(root)
const launcher = new Launcher()
const branches: TestBranch[] = []

function branchOf(options: Parameters<typeof makeBranch>[0] = {}): TestBranch {
  const branch = makeBranch(options)
  branches.push(branch)
  return branch
}

beforeAll(async () => await warmUp(launcher))
afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

describe('an agent', () => {
  check('runs over the base and writes into the layer', async () => {
    const branch = branchOf()
    writeFileSync(join(branch.base, 'file'), 'old\n')
    chownSync(join(branch.base, 'file'), 1000, 1000)
    const ran = await run(launcher, branch, ['sh', '-c', 'cat file; echo new >file; id -u; pwd; exit 7'])
    expect(ran).toMatchObject({ output: `old\n1000\n${branch.base}\n`, errors: '' })
    expect(ran.exit).toMatchObject({ code: 7, signal: null, cause: 'exited' })
    expect(readFileSync(join(branch.base, 'file'), 'utf8')).toBe('old\n')
    expect(readFileSync(join(branch.upper, 'file'), 'utf8')).toBe('new\n')
  })

  check('of root over a base of root is nobody in particular, and its files are root’s on disk', async () => {
    const branch = branchOf({ owner: 0 })
    const ran = await run(launcher, branch, [
      'sh',
      '-c',
      'id -u; id -un; stat -c %u .; echo x >made; stat -c %u made',
    ])
    expect(ran.errors).toBe('')
    const [uid, name, base, made] = ran.output.split('\n')
    expect(Number(uid)).toBeGreaterThan(0)
    expect([name, base, made]).toEqual(['agent', uid, uid])
    expect(statSync(join(branch.upper, 'made')).uid).toBe(0)
    expect(existsSync(join(branch.base, 'made'))).toBe(false)
  })

  check('is ended before the daemon when memory is out, however well that is protected', async () => {
    const branch = branchOf()
    const own = () => Number(readFileSync('/proc/self/oom_score_adj', 'utf8'))
    const before = own()
    const { output } = await run(launcher, branch, [
      'cat',
      '/proc/self/oom_score_adj',
      '/proc/1/oom_score_adj',
    ])
    const expected = Math.min(Math.max(before, 0) + 200, 1000)
    expect(output).toBe(`${expected}\n${expected}\n`)
    // The child that wrote its own shares our memory until it executes: the kernel must not have written ours.
    expect(own()).toBe(before)
  })

  check('sees a small root with nothing of the host’s but the system', async () => {
    const branch = branchOf()
    const list = 'ls -A /; echo --; ls -A /run /var/tmp /dev/shm /tmp; echo --; ls -A /dev'
    const { output } = await run(launcher, branch, ['sh', '-c', list])
    const [top, places, devices] = output.split('--\n').map((part) => part.split('\n'))
    const system = ['bin', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'nix', 'opt', 'sbin', 'usr']
    const own = ['dev', 'home', 'proc', 'run', 'tmp', 'var', branch.base.split('/')[1]]
    expect([...system, ...own]).toEqual(expect.arrayContaining(top?.filter(Boolean) ?? ['nothing']))
    // The only name in any of them leads to the base.
    expect(places?.filter((line) => line !== '' && !line.startsWith('/'))).toEqual(
      branch.base.startsWith('/tmp/') ? [branch.base.split('/')[2]] : [],
    )
    expect(devices?.filter(Boolean)).toEqual(
      'fd full null ptmx pts random shm stderr stdin stdout tty urandom zero'.split(' '),
    )
  })

  check('cannot read what is masked, and can read what is beside it', async () => {
    const script = 'cat /etc/shadow; cat /proc/keys; grep -c root /etc/passwd; cat /proc/sys/kernel/ostype'
    const { output, errors } = await run(launcher, branchOf(), ['sh', '-c', script])
    expect(output).toMatch(/^[1-9]\d*\nLinux\n$/)
    expect(errors).toContain('/etc/shadow: Permission denied')
    expect(errors).toContain('/proc/keys: Permission denied')
  })

  check('has only the environment that it was given', async () => {
    const environment = { GIVEN: 'yes', PATH: '/usr/bin:/bin' }
    const { output } = await run(launcher, branchOf(), ['env'], { environment })
    const names = output
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0])
      .sort()
    expect(names).toEqual(['GIVEN', 'HOME', 'LOGNAME', 'PATH', 'SHELL', 'USER'])
  })

  check('has descriptors 0 to 2 and no other', async () => {
    const { output } = await run(launcher, branchOf(), ['sh', '-c', 'ls /proc/self/fd; echo end'])
    // The fourth is the directory that ls reads.
    expect(output.trim().split('\n')).toEqual(['0', '1', '2', '3', 'end'])
  })

  check('leaves the host’s mount table as it was', async () => {
    const before = readFileSync('/proc/self/mountinfo', 'utf8')
    await run(launcher, branchOf(), ['true'])
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).toBe(before)
  })

  check('that a signal ends says so', async () => {
    const { exit } = await run(launcher, branchOf(), ['sh', '-c', 'kill -SEGV $$'])
    expect(exit).toMatchObject({ code: null, signal: 'SIGSEGV', cause: 'signal' })
  })

  check('counts what it used', async () => {
    const { exit } = await run(launcher, branchOf(), [
      'sh',
      '-c',
      'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done',
    ])
    expect(exit.cpuUserMs).toBeGreaterThan(10)
    expect(exit.maxRssBytes).toBeGreaterThan(500_000)
  })
})

describe('signals', () => {
  const sleeper = ['sh', '-c', 'trap "echo term; exit 3" TERM; echo ready; while :; do sleep 0.02; done']

  const started = async (argv: readonly string[]) => {
    const agent = await launcher.start(requestOf(branchOf(), argv))
    if (agent.output !== undefined) await once(agent.output, 'data')
    return agent
  }

  check('TERM reaches the agent, which may end in its own way', async () => {
    const agent = await started(sleeper)
    expect(await agent.signal('TERM')).toMatchObject({ survivors: 0 })
    expect(await agent.exited).toMatchObject({ code: 3, signal: null, cause: 'exited' })
  })

  check('KILL ends all of its processes, even those that ignore everything', async () => {
    const agent = await started([
      'sh',
      '-c',
      'trap "" TERM INT HUP; (setsid sleep 100 &) ; sleep 100 & echo ready; wait',
    ])
    const result = await agent.signal('KILL')
    expect(result.survivors).toBe(0)
    expect(result.terminated).toBeGreaterThanOrEqual(3)
    expect(await agent.exited).toMatchObject({ code: null, signal: 'SIGKILL', cause: 'signal' })
  })

  check('STOP and CONT freeze and thaw everything', async () => {
    const agent = await started(['sh', '-c', 'while :; do echo x; done'])
    await agent.signal('STOP')
    const { cpuUserMicros } = cgroupUsage(agent.cgroup)
    await setTimeout(60)
    expect(cgroupUsage(agent.cgroup).cpuUserMicros).toBe(cpuUserMicros)
    await agent.signal('CONT')
    expect(await agent.signal('KILL')).toMatchObject({ survivors: 0 })
    await agent.exited
  })

  check.each(['KILL', 'TERM', 'INT'])(
    '%s ends a frozen agent at once, and lets it run no more',
    async (name) => {
      const agent = await started(['sh', '-c', `trap 'echo answered' INT TERM; echo up; read x`])
      const said = text(agent.output ?? expect.fail())
      await agent.freeze()
      const since = performance.now()
      expect(await agent.signal(name)).toMatchObject({ survivors: 0 })
      expect(await agent.exited).toMatchObject({ signal: 'SIGKILL', cause: 'signal' })
      // Otherwise it would be given ten seconds.
      expect(performance.now() - since).toBeLessThan(9_000)
      expect(await said).not.toContain('answered')
    },
  )
})
