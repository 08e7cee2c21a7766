import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { CommandLimits } from '../../../daemon/contract/engine.ts'
import { type Profile, SMALLEST_MEMORY } from '../../../daemon/contract/profile.ts'
import { diskOf } from '../../../daemon/kernel/cgroup-limits.ts'
import { Launcher } from '../../../daemon/sandbox/launch.ts'
import type { RunningBranch } from '../../../daemon/sandbox/running-branch.ts'
import { makeBranch, requestOf, type TestBranch } from '../../root/branch.fixture.ts'
import { effectOf } from '../../root/effect.ts'

const MiB = 2 ** 20
const EAT = 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); echo survived'
const launcher = new Launcher()
const started: { branch: TestBranch; agent: RunningBranch }[] = []

afterEach(async () => {
  for (const { branch, agent } of started.splice(0)) {
    await agent.kill('signal')
    branch.remove()
  }
})

async function start(profile: Partial<Profile>, script: string) {
  const branch = makeBranch({ profile })
  const agent = await launcher.start(requestOf(branch, ['sh', '-c', script]))
  agent.errors?.resume()
  started.push({ branch, agent })
  return agent
}

const outputOf = async (agent: RunningBranch): Promise<string> =>
  agent.output === undefined ? '' : await text(agent.output)

const fileOf = (agent: RunningBranch, name: string): string =>
  readFileSync(join(agent.cgroup, name), 'utf8').trim()

const granted = (what: string) => expect.objectContaining({ what, full: true })

/** Seconds of processor time that an agent with two busy loops gets in three seconds. */
async function burnt(resources: Profile['resources']): Promise<number> {
  const agent = await start({ resources }, 'while :; do :; done & while :; do :; done')
  const before = agent.readings().cpu
  await delay(3000)
  const used = agent.readings().cpu - before
  await agent.kill('signal')
  return used
}

describe('processors', () => {
  it('are held to the quota, and without one they are not', async () => {
    const limited = await burnt({ cpus: 0.2 })
    expect(limited).toBeGreaterThan(0)
    expect(await burnt({})).toBeGreaterThan(2 * limited)
  })

  it('of a profile that requires the controller are granted, and the kernel says the same', async () => {
    const agent = await start({ resources: { cpus: 0.2 }, require: ['cgroup2-cpu'] }, 'sleep 100')
    expect(agent.grants).toContainEqual(granted('processors'))
    expect(fileOf(agent, 'cpu.max')).toBe('20000 100000')
  })

  it('are shared by the weight of the scope, which has no other limit of processes', async () => {
    const agent = await start({ resources: { cpuWeight: 37 } }, 'sleep 100')
    const scope = dirname(agent.cgroup)
    expect(agent.grants).toContainEqual(granted('share of the processors'))
    expect(readFileSync(join(scope, 'cpu.weight'), 'utf8').trim()).toBe('37')
    const unit = scope.split('/').at(-1) ?? ''
    const shown = execFileSync('systemctl', ['show', unit, '-p', 'CPUWeight,TasksMax'], { encoding: 'utf8' })
    expect(shown.trim().split('\n').sort()).toEqual(['CPUWeight=37', 'TasksMax=infinity'])
  })

  it('that are short show as pressure', async () => {
    const agent = await start({ resources: { cpus: 0.1 } }, 'while :; do :; done & while :; do :; done')
    for (let tries = 0; (agent.pressure('cpu')?.some10 ?? 0) < 5 && tries < 100; tries++) await delay(200)
    expect(agent.pressure('cpu')?.some10).toBeGreaterThanOrEqual(5)
    expect(agent.pressure('memory')).toMatchObject({ some10: expect.any(Number) })
  })
})

describe('disks', () => {
  /** Milliseconds that four mebibytes take past the page cache. */
  async function written(resources: Profile['resources']): Promise<number> {
    const agent = await start({ resources }, 'dd if=/dev/zero of=f bs=64k count=64 oflag=direct && echo ok')
    const began = performance.now()
    expect(await outputOf(agent)).toBe('ok\n')
    await agent.exited
    return performance.now() - began
  }

  it('are held to the rate, and without one they are not', async () => {
    const limited = await written({ ioWrite: MiB })
    expect(limited).toBeGreaterThan(2000)
    expect(await written({})).toBeLessThan(limited / 2)
  })

  it('are named in io.max, as a whole disk', async () => {
    const agent = await start({ resources: { ioRead: 5 * MiB, ioWriteOps: 70 } }, 'sleep 100')
    expect(agent.grants).toContainEqual(granted('disk rates'))
    expect(fileOf(agent, 'io.max')).toMatch(/^\d+:\d+ rbps=5242880 wbps=max riops=max wiops=70$/)
  })

  it('take a weight that nobody acts on without saying that it was granted', async () => {
    const agent = await start({ resources: { ioWeight: 50 } }, 'sleep 100')
    expect(agent.grants).toContainEqual(expect.objectContaining({ what: 'share of the disks', full: false }))
  })
})

describe('a share of the disks', () => {
  /** A profile's share, and what the kernel has in the file of whoever acts on it. */
  const shared = async (file: string) => {
    const agent = await start({ resources: { ioWeight: 50 } }, 'sleep 100')
    // On the scope: shares count among siblings.
    return { grants: agent.grants, weight: readFileSync(join(dirname(agent.cgroup), file), 'utf8') }
  }
  const disk = (): string => {
    const branch = makeBranch()
    const device = diskOf(branch.base) ?? ''
    branch.remove()
    return device
  }

  it('is granted where the disk has the scheduler for it', async () => {
    execFileSync('modprobe', ['bfq'])
    const scheduler = `/sys/dev/block/${disk()}/queue/scheduler`
    const before = /\[(\S+)\]/.exec(readFileSync(scheduler, 'utf8'))?.[1] ?? 'none'
    writeFileSync(scheduler, 'bfq')
    try {
      const { grants, weight } = await shared('io.bfq.weight')
      expect(grants).toContainEqual(granted('share of the disks'))
      expect(weight).toMatch(/^(default )?50$/m)
    } finally {
      writeFileSync(scheduler, before)
    }
  })

  it('is granted where the cost model is on', async () => {
    const model = '/sys/fs/cgroup/io.cost.qos'
    writeFileSync(model, `${disk()} enable=1`)
    try {
      const { grants, weight } = await shared('io.weight')
      expect(grants).toContainEqual(granted('share of the disks'))
      expect(weight).toMatch(/^default 50$/m)
    } finally {
      writeFileSync(model, `${disk()} enable=0`)
    }
  })
})

describe('memory', () => {
  const budgets = (memory: number, atLimit: 'freeze' | 'kill' = 'kill') => ({ limits: { memory }, atLimit })

  it('is not used up by files that were read', async () => {
    // Written here, because the cache of a file is counted where it was first used.
    const script = 'head -c 100000000 /dev/zero > big; cat big > /dev/null; echo read; sleep 100'
    const agent = await start({ budgets: budgets(48 * MiB) }, script)
    const output = agent.output
    if (output === undefined) throw new Error('no output')
    await new Promise((resolve) => output.once('data', resolve))
    const held = Number(fileOf(agent, 'memory.current'))
    expect(held).toBeGreaterThan(32 * MiB)
    expect(agent.readings().memory).toBeLessThan(24 * MiB)
  })

  it('that is asked about has a brake below its end, and both move with an extension', async () => {
    const agent = await start({ budgets: budgets(64 * MiB, 'freeze') }, 'sleep 100')
    const held = () => [
      fileOf(agent, 'memory.high'),
      fileOf(agent, 'memory.max'),
      fileOf(agent, 'memory.swap.max'),
    ]
    expect(held()).toEqual([68 * MiB, 80 * MiB, 0].map(String))
    agent.extend('memory', 128 * MiB)
    expect(held()).toEqual([136 * MiB, 160 * MiB, 0].map(String))
  })

  it('of the smallest budget that is taken carries an agent through its start', async () => {
    const agent = await start({ budgets: budgets(SMALLEST_MEMORY) }, 'echo began')
    expect(await outputOf(agent)).toBe('began\n')
    expect(await agent.exited).toMatchObject({ code: 0, cause: 'exited' })
  })

  it('that is not ends with the agent, and its end is called what it was', async () => {
    const agent = await start({ budgets: budgets(48 * MiB) }, EAT)
    expect(await outputOf(agent)).toBe('')
    expect(await agent.exited).toMatchObject({ signal: 'SIGKILL', cause: 'oom' })
  })

  it('that is not is the end, also of an agent that would be started again', async () => {
    const branch = makeBranch({ profile: { budgets: budgets(48 * MiB) } })
    const restart = { when: 'always', times: 3 } as const
    const agent = await launcher.start(requestOf(branch, ['sh', '-c', EAT], { restart }))
    agent.errors?.resume()
    started.push({ branch, agent })
    expect(await outputOf(agent)).toBe('')
    const exit = await agent.exited
    expect(exit).toMatchObject({ signal: 'SIGKILL', cause: 'oom' })
    expect(exit.restarts).toBeUndefined()
  })
})

describe('a command that joins, with limits of its own', () => {
  async function joined(limits: CommandLimits, script: string, profile: Partial<Profile> = {}) {
    const agent = await start(profile, 'read line; exit 3')
    const request = {
      cwd: started.at(-1)?.branch.base ?? '/',
      environment: {},
      stdio: { kind: 'pipes' } as const,
    }
    const held = await agent.exec({ ...request, argv: ['sh', '-c', script], limits })
    return { agent, held, effect: await effectOf(held) }
  }

  it('that needs more memory is ended with all that it started and told apart, and the agent goes on', async () => {
    const { agent, effect } = await joined({ memory: 48 * MiB }, `sleep 100 & ${EAT}`)
    expect(effect).toMatchObject({ signal: 'SIGKILL', cause: 'oom' })
    agent.input?.write('\n')
    expect(await agent.exited, 'its own end is none of that').toMatchObject({ code: 3, cause: 'exited' })
  })

  it('has only so many processes, and the agent has more', async () => {
    const many = 'for i in 1 2 3 4 5 6; do sleep 1 & done; wait; echo all'
    const text = async (limits: CommandLimits): Promise<string> =>
      String(Buffer.from((await joined(limits, many)).effect.stdout.bytes))
    expect(await text({ pids: 4 })).toBe('')
    expect(await text({}), 'control').toBe('all\n')
  })

  it('has a part of the processors', async () => {
    const burn = 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'
    const slow = (await joined({ cpus: 0.1 }, burn)).effect
    const fast = (await joined({}, burn)).effect
    const share = ({ cpuUserMs, cpuSystemMs, durationMs }: typeof slow): number =>
      (cpuUserMs + cpuSystemMs) / durationMs
    expect(share(slow)).toBeLessThan(0.2)
    expect(share(fast), 'control').toBeGreaterThan(2 * share(slow))
  })
})
