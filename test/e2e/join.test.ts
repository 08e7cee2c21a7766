import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { cgroupHierarchy, controllersOf } from '../../daemon/kernel/cgroup.ts'
import { begin, DEVELOPER } from './cli.ts'
import { inProject, onBus } from './grounds.ts'
import { eventually, WHO } from './private-bus.ts'
import { noTypist, typing } from './typist.ts'

const program = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const { developer, colleague, reviewer } = WHO

const controllers = controllersOf(cgroupHierarchy() ?? '')
const limitsHold = (['memory', 'pids', 'cpu'] as const).every((name) => controllers.includes(name))
const REFUSED = [69, expect.stringMatching(/This host cannot hold a command to .* of its own\n/)]

describe('in a branch that the daemon runs', () => {
  const { here, it } = onBus('each', noTypist)
  const puzzlectl = (...args: string[]) => here.puzzlectl(developer, ...args)
  const detach = async (script: string, ...options: string[]): Promise<string> => {
    const { out, err, status } = await puzzlectl('run', '--detach', ...options, '--', 'sh', '-c', script)
    expect([status, err]).toEqual([0, ''])
    return out.trim()
  }
  const READY = 'echo kept > kept.txt; echo ready; exec sleep 600'
  /** `exec` after the agent has done its first step. */
  const whenReady = (id: string) =>
    eventually(async () => {
      if (!(await puzzlectl('logs', id)).out.includes('ready')) throw new Error('Not yet')
    })

  it('a command joins the agent, with its streams and its status', async () => {
    const id = await detach(READY)
    await whenReady(id)
    const { status, out, err } = await puzzlectl(
      ...['exec', id, '--', 'sh', '-c', 'cat kept.txt; echo wrong >&2; echo more > more.txt; exit 7'],
    )
    expect([status, out, err]).toEqual([7, 'kept\n', 'wrong\n'])
    expect((await puzzlectl('diff', '--name-only', id)).out).toBe('kept.txt\nmore.txt\n')
    expect((await puzzlectl('exec', id, '--', 'no-such-command')).status).toBe(127)
    expect((await here.puzzlectl(colleague, 'exec', id, '--', 'true')).status).toBe(68)
    expect((await here.puzzlectl(reviewer, 'exec', id, '--', 'true')).status).toBe(77)
  })

  it('a command has limits of its own, or is refused where the host cannot hold them', async () => {
    const id = await detach(READY)
    const own = ['--limit', 'memory=64M', '--limit', 'pids=30', '--limit', 'cpus=0.5'] as const
    const ended = await puzzlectl('exec', ...own, id, '--', 'true')
    expect([ended.status, ended.err]).toEqual(limitsHold ? [0, ''] : REFUSED)
    const wrong = await puzzlectl('exec', '--limit', 'memory=1M', id, '--', 'true')
    expect([wrong.status, wrong.err]).toEqual([2, expect.stringContaining('Give it at least 16 MiB')])
    expect((await puzzlectl('exec', '--limit', 'memory=many', id, '--', 'true')).status).toBe(2)
    expect((await puzzlectl('exec', id, '--', 'true')).status, 'the agent runs on').toBe(0)
  })

  it('a command ends in a structured result, in which a time limit is told apart', async () => {
    const id = await detach(READY)
    const run = async (...args: string[]) => {
      const { out, status } = await puzzlectl('exec', '--json', ...args)
      return { status, ...(JSON.parse(out) as Record<string, unknown>) }
    }
    expect(
      await run(id, '--', 'sh', '-c', 'printf "a\\n\\377" >&2; head -c 1100000 /dev/zero; exit 3'),
    ).toMatchObject({
      ...{ status: 3, branch: id, code: 3, signal: null, cause: 'exited' },
      stdout: { size: 1_100_000, cut: true },
      stderr: { base64: 'YQr/', size: 3, cut: false },
      durationMs: expect.any(Number),
      maxRssBytes: expect.any(Number),
    })
    const late = await run('--timeout', '0.3', id, '--', 'sleep', '60')
    expect(late).toMatchObject({ status: 124, code: null, signal: 'SIGKILL', cause: 'timeout' })
    expect(await run(id, '--', 'sh', '-c', 'kill -USR1 $$')).toMatchObject({
      ...{ status: 138, signal: 'SIGUSR1', cause: 'signal' },
    })
  })

  it('a command ends with its caller', async () => {
    const id = await detach(READY)
    const inside = 'echo started > mark; sleep 601'
    const identity = ['--reuid', '33', '--regid', '33', '--groups', String(developer.groups[0])]
    const command = [process.execPath, program, 'exec', id, '--', 'sh', '-c', inside]
    const child = spawn('setpriv', [...identity, ...command], {
      cwd: here.project,
      env: { PATH: process.env.PATH, HOME: '/nonexistent', DBUS_SYSTEM_BUS_ADDRESS: here.address },
      stdio: 'ignore',
    })
    const processes = async (): Promise<string> =>
      (await puzzlectl('exec', id, '--', 'sh', '-c', 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).out
    await eventually(async () => {
      if (!(await processes()).includes('sleep 601')) throw new Error('Not yet')
    })
    child.kill('SIGKILL')
    await eventually(async () => {
      if ((await processes()).includes('sleep 601')) throw new Error('Still there')
    })
    expect(await processes()).toContain('sleep 600')
  })

  it('runs in the place of an agent that has ended, and the branch is judged again', async () => {
    const ended = await puzzlectl(
      'run',
      '--then',
      'hold',
      '--name',
      'fix',
      '--',
      'sh',
      '-c',
      'echo a > a.txt',
    )
    expect(ended.status).toBe(0)
    const { status, out, err } = await puzzlectl(
      'exec',
      'fix',
      '--',
      'sh',
      '-c',
      'cat a.txt; echo b > b.txt; exit 4',
    )
    expect([status, out]).toEqual([4, 'a\n'])
    expect(err).toMatch(/branch fix: \+2 ~0 -0 .* held/)
    const shown = JSON.parse((await puzzlectl('show', 'fix', '--json')).out) as object
    expect(shown).toMatchObject({ state: 'held', exit: { code: 0 } })
  })

  it('a person attaches, types, and lets go; the agent goes on', async () => {
    const id = await detach('stty size; echo ready; while read -r line; do echo "got $line"; done', '--tty')
    const keys = ['33 111|ready', 'hello\\n', 'got hello', '\\x1d\\x1d\\x1d', 'detached']
    const { out, err } = await here.exec(developer, typing(keys, process.execPath, program, 'attach', id))
    expect(err).toBe('')
    expect(out).toContain('got hello')
    expect(out).toContain('the agent goes on')
    expect(JSON.parse((await puzzlectl('show', id, '--json')).out)).toMatchObject({ state: 'running' })
    // Whoever comes later sees what was written before.
    const again = await here.exec(developer, ['timeout', '5', process.execPath, program, 'attach', id])
    expect(again.out).toContain('got hello')
  })

  it('what an agent wrote is kept, stream by stream, also afterwards', async () => {
    const ended = await puzzlectl(
      ...['run', '--then', 'hold', '--name', 'said', '--'],
      ...['sh', '-c', 'echo one; echo two >&2; printf "\\033[31mthree\\n"; echo x > x'],
    )
    expect(ended.out).toBe('one\n\u001b[31mthree\n')
    const { out, err, status } = await puzzlectl('logs', 'said')
    expect([status, out, err]).toEqual([0, 'one\n\u001b[31mthree\n', 'two\n'])
    const last = await puzzlectl('logs', 'said', '--tail', '1')
    expect(`${last.out}${last.err}`.split('\n')).toHaveLength(2)
    const lines = (await puzzlectl('logs', 'said', '--json')).out.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual({
      ...{ at: expect.stringMatching(/^\d{4}-/), stream: 'stderr', text: 'two\n' },
    })
    expect((await here.puzzlectl(reviewer, 'logs', 'said')).out).toBe(out)
    expect((await here.puzzlectl(colleague, 'logs', 'said')).status).toBe(68)
  })

  it('an agent that nobody waits for is judged when it ends', async () => {
    const landed = await detach('echo a > a.txt')
    await eventually(async () => {
      if (!readdirSync(here.project).includes('a.txt')) throw new Error('Not yet')
    })
    const told = await puzzlectl('wait', landed)
    expect([told.status, told.out]).toEqual([
      0,
      expect.stringMatching(/branch \w+: (.*; )?committed as c\w+/),
    ])
    const held = await detach('echo b > b.txt', '--then', 'hold')
    await eventually(async () => {
      const { state } = JSON.parse((await puzzlectl('show', held, '--json')).out) as { state: string }
      if (state !== 'held') throw new Error(`Still ${state}`)
    })
    expect((await puzzlectl('wait', held)).out).toMatch(/\+1 ~0 -0 .* held/)
    // One that changed nothing can still be asked how it ended.
    const nothing = await detach('echo said; exit 5')
    await eventually(async () => {
      if ((await puzzlectl('logs', nothing)).out !== 'said\n') throw new Error('Not yet')
    })
    expect((await puzzlectl('wait', nothing)).status).toBe(5)
  })

  it('what happened last is kept by the daemon, for those who may see it', async () => {
    await puzzlectl('run', '--then', 'hold', '--name', 'seen', '--', 'sh', '-c', 'echo a > a')
    const kinds = async (who: typeof developer | typeof colleague): Promise<string[]> =>
      (await here.puzzlectl(who, 'events', '--json')).out
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { kind: string; to?: string })
        .map(({ kind, to }) => to ?? kind)
    expect(await kinds(developer)).toEqual(expect.arrayContaining(['running', 'stopped', 'verdict', 'held']))
    expect(await kinds(colleague)).toEqual([])
    expect((await puzzlectl('events', '--branch', 'seen')).out).toContain('to=held')
    // A branch without changes goes with its agent: what that ran into is still told, and to no one else.
    const gone = await detach('exit 3')
    expect((await puzzlectl('wait', gone)).status).toBe(3)
    expect((await puzzlectl('ls', '-a')).out).not.toContain(gone)
    expect((await puzzlectl('events')).out).toContain(gone)
    expect((await here.puzzlectl(colleague, 'events')).out).toBe('')
  })

  it('is followed until it ends', async () => {
    const id = await detach('echo first; sleep 1; echo last; echo x > x')
    const { out, status } = await puzzlectl('logs', '--follow', id)
    expect([status, out]).toEqual([0, 'first\nlast\n'])
  })
})

describe('without a daemon', () => {
  const { here } = inProject()

  it('does not detach where nobody would hold the agent', async () => {
    const { status, err } = await here.puzzlectl('run', '--detach', '--', 'true')
    expect([status, err]).toEqual([2, expect.stringContaining('needs the daemon')])
  })

  it('commands on one store at the same moment wait for each other', async () => {
    const all = await Promise.all(
      ['a', 'b', 'c'].map((name) => here.puzzlectl('run', '--', 'sh', '-c', `echo ${name} > ${name}.txt`)),
    )
    expect(all.map(({ status, err }) => [status, err.includes('committed')])).toEqual(
      all.map(() => [0, true]),
    )
  })

  it('a store that another process uses can be looked into', async () => {
    const busy = begin(here.project, here.state, DEVELOPER, [
      ...['run', '--then', 'hold', '--', 'sh', '-c', 'echo kept > kept.txt; echo ready; sleep 600'],
    ])
    try {
      const rows = await eventually(async () => {
        const { out, err, status } = await here.puzzlectl('ls', '--json')
        expect([status, err]).toEqual([0, ''])
        const found = JSON.parse(out) as { id: string; state: string }[]
        if (found[0]?.state !== 'running') throw new Error(`Not yet: ${out}`)
        return found
      })
      const id = rows[0]?.id ?? ''
      await eventually(async () => {
        if ((await here.puzzlectl('logs', id)).out !== 'ready\n') throw new Error('Not yet')
      })
      expect((await here.puzzlectl('diff', '--name-only', id)).out).toBe('kept.txt\n')
      expect((await here.puzzlectl('diff', id)).out).toContain('+kept')
      expect((await here.puzzlectl('show', id)).status).toBe(0)
      // Whatever changes something still has to wait.
      const waiting = ['discard', 'commit', 'signal'].map((verb) => here.puzzlectl(verb, id))
      expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([75, 75, 75])
      expect(JSON.parse((await here.puzzlectl('show', id, '--json')).out)).toMatchObject({ state: 'running' })
    } finally {
      await busy.kill()
      await busy.ended
      // Whoever opens the store next ends what is left of it.
      await here.puzzlectl('ls')
    }
  })

  it('a command runs in a held branch, and output is kept', async () => {
    const ended = await here.puzzlectl(
      'run',
      '--then',
      'hold',
      '--name',
      'a',
      '--',
      'sh',
      '-c',
      'echo hi; echo x > x',
    )
    expect(ended.status).toBe(0)
    expect((await here.puzzlectl('logs', 'a')).out).toBe('hi\n')
    const { status, out } = await here.puzzlectl('exec', 'a', '--', 'cat', 'x')
    expect([status, out]).toEqual([0, 'x\n'])
    const limited = await here.puzzlectl('exec', '--limit', 'cpus=1', 'a', '--', 'true')
    expect([limited.status, limited.err]).toEqual(limitsHold ? [0, expect.stringContaining('held')] : REFUSED)
    const effect = JSON.parse((await here.puzzlectl('exec', '--json', 'a', '--', 'cat', 'x')).out) as object
    expect(effect).toMatchObject({ code: 0, stdout: { text: 'x\n' } })
    expect(readFileSync(join(here.state, 'version'), 'utf8')).toBe('1\n')
  })
})
