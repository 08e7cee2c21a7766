import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { uptime } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { cgroupHierarchy, controllersOf } from '../../daemon/kernel/cgroup.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import type { ExecRequest, RunningBranch } from '../../daemon/sandbox/running-branch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'
import { effectOf } from './effect.ts'

const check = needs(root)
const launcher = new Launcher()
let branch: TestBranch
let running: RunningBranch

beforeAll(async () => await warmUp(launcher))

async function begin(): Promise<void> {
  branch = makeBranch()
  running = await launcher.start(requestOf(branch, ['sh', '-c', 'echo ready; exec sleep 1000']))
  if (running.output !== undefined) await once(running.output, 'data')
}

afterEach(async () => {
  await running?.kill('signal')
  running?.errors?.resume()
  branch?.remove()
})

const effect = async (argv: readonly string[], change: Partial<ExecRequest> = {}, limit?: number) =>
  await effectOf(
    await running.exec({ argv, cwd: branch.base, environment: {}, stdio: { kind: 'pipes' }, ...change }),
    limit,
  )

const out = (result: Awaited<ReturnType<typeof effect>>): string =>
  Buffer.from(result.stdout.bytes).toString()

describe('a command in a running branch', () => {
  check('sees the agent’s processes and files and none of the host’s', async () => {
    await begin()
    const result = await effect(['sh', '-c', 'cat /proc/[0-9]*/comm; pwd; id -u; hostname; exit 4'])
    const lines = out(result).trim().split('\n')
    expect(lines.slice(-3)).toEqual([branch.base, '1000', `puzzle-${branch.record.id}`])
    expect(lines.slice(0, -3).sort()).toEqual([expect.stringContaining('puzzled-i'), 'sh', 'sleep'])
    expect(result).toMatchObject({ code: 4, signal: null, cause: 'exited' })
    expect(result.durationMs).toBeGreaterThanOrEqual(0)
  })

  check('has the clocks of its agent: of their own, where the profile says so', async () => {
    branch = makeBranch({ profile: { namespaces: { time: true } } })
    const look = 'readlink /proc/self/ns/time; cut -d. -f1 /proc/uptime; cat /proc/self/timens_offsets'
    running = await launcher.start(requestOf(branch, ['sh', '-c', `${look}; echo ready; exec sleep 1000`]))
    let said = ''
    for await (const chunk of running.output ?? []) {
      said += chunk
      if (said.endsWith('ready\n')) break
    }
    const [namespace, up, ...offsets] = said.trim().split('\n')
    expect(namespace).not.toBe(readlinkSync('/proc/self/ns/time'))
    expect(Number(up)).toBeLessThan(30)
    const [, joinedUp, ...joinedOffsets] = out(await effect(['sh', '-c', look]))
      .trim()
      .split('\n')
    expect([...joinedOffsets, 'ready']).toEqual(offsets)
    expect(Number(joinedUp)).toBeLessThan(30)
    // The control: the host is up for longer.
    expect(uptime()).toBeGreaterThan(60)
  })

  check('is locked in like the agent', async () => {
    await begin()
    const status = out(await effect(['cat', '/proc/self/status']))
    for (const line of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
      expect(status).toContain(`Cap${line}:\t${'0'.repeat(16)}`)
    expect(status).toContain('NoNewPrivs:\t1')
    expect(status).toContain('Seccomp:\t2')
  })

  check('is killed at its time limit with all that it started, and the agent is not', async () => {
    await begin()
    const result = await effect(['sh', '-c', 'setsid sleep 100 & sleep 100'], { timeoutMillis: 200 })
    expect(result).toMatchObject({ code: null, signal: 'SIGKILL', cause: 'timeout' })
    expect(out(await effect(['sh', '-c', 'cat /proc/[0-9]*/comm | grep -c sleep'])).trim()).toBe('1')
  })

  check('is charged with its own memory and not with what the daemon holds', async () => {
    await begin()
    const MIB = 2 ** 20
    // The control: this process, out of which the command is cloned, holds much more.
    expect(process.memoryUsage().rss).toBeGreaterThan(60 * MIB)
    const held = async (argv: readonly string[], timeoutMillis?: number): Promise<number> =>
      (await effect(argv, timeoutMillis === undefined ? {} : { timeoutMillis })).maxRssBytes
    const small = await held(['true'])
    expect(small).toBeGreaterThan(100_000)
    expect(small).toBeLessThan(30 * MIB)
    // One that is killed says nothing itself.
    const killed = await held(['sleep', '100'], 300)
    expect(killed).toBeGreaterThan(100_000)
    expect(killed).toBeLessThan(30 * MIB)
    const large = await held(['sh', '-c', 'x=$(head -c 50000000 /dev/zero | tr "\\0" a); :'])
    expect(large).toBeGreaterThan(45 * MIB)
    expect(large).toBeLessThan(400 * MIB)
  })

  check('with less memory than a start needs is refused, and the agent runs on', async () => {
    await begin()
    const limited = (memory: number) => effect(['true'], { limits: { memory } })
    await expect(limited(2 ** 20)).rejects.toMatchObject({ code: 'usage', hint: 'Give it at least 16 MiB.' })
    expect((await effect(['true'])).code).toBe(0)
  })

  check('is held to its own limits by the kernel, or refused where that cannot be', async () => {
    await begin()
    const controllers = controllersOf(cgroupHierarchy() ?? '')
    const one = ['sh', '-c', 'cat /proc/self/cgroup'] as const
    for (const [limits, controller] of [
      [{ memory: 64 * 2 ** 20 }, 'memory'],
      [{ pids: 20 }, 'pids'],
      [{ cpus: 0.5 }, 'cpu'],
    ] as const) {
      const result = effect(one, { limits })
      if (controllers.includes(controller)) expect((await result).code).toBe(0)
      else
        await expect(result).rejects.toMatchObject({
          ...{ code: 'feature-missing', data: { feature: `cgroup2-${controller}` } },
          message: expect.stringMatching(/^This host cannot hold a command to a .* of its own$/),
        })
    }
    expect((await effect(['true'])).code, 'the agent runs on').toBe(0)
  })

  check('keeps as much of its output as was asked for and counts the rest', async () => {
    await begin()
    const result = await effect(['sh', '-c', 'head -c 300000 /dev/zero; echo oops >&2'], {}, 1000)
    expect(result.stdout.size).toBe(300_000)
    expect(result.stdout.bytes.length).toBe(1000)
    expect(Buffer.from(result.stderr.bytes).toString()).toBe('oops\n')
  })

  check('has a terminal of the agent’s own devpts', async () => {
    await begin()
    const held = await running.exec({
      argv: ['sh', '-c', 'tty; stty size'],
      cwd: branch.base,
      environment: {},
      stdio: { kind: 'pty', columns: 90, rows: 33 },
    })
    expect(out(await effectOf(held))).toBe('/dev/pts/0\r\n33 90\r\n')
  })

  check('that does not exist is 127, and the agent runs on', async () => {
    await begin()
    await expect(effect(['no-such'])).rejects.toMatchObject({ code: 'command-not-found' })
    await expect(effect(['true'], { cwd: '/etc' })).rejects.toMatchObject({ code: 'usage' })
    expect((await effect(['true'])).code).toBe(0)
  })

  check('ends with the agent, and none can be started after it', async () => {
    await begin()
    const held = await running.exec({
      argv: ['sleep', '100'],
      cwd: branch.base,
      environment: {},
      stdio: { kind: 'pipes' },
    })
    held.output?.resume()
    held.errors?.resume()
    await running.signal('KILL')
    expect(await held.exited).toMatchObject({ signal: 'SIGKILL' })
    await setTimeout(0)
    await expect(effect(['true'])).rejects.toMatchObject({ code: 'wrong-state' })
  })
})
