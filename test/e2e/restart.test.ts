import { chmodSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { BranchRecord } from '../../daemon/contract/branch.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { needs, root } from '../tier/needs.ts'
import { inProject, onBus } from './grounds.ts'
import { end, eventually, WHO } from './private-bus.ts'
import { noTypist, typing } from './typist.ts'

const check = needs(root)

/** Counts its starts in a file of the branch; fails until the last of them. */
const failing = (starts: number): string =>
  `read n <n; echo $((n+1)) >n; echo start $n; [ $n -ge ${starts} ] || exit 7`

describe('an agent that ends is started again', () => {
  const { here, put, sh, text, file } = inProject()

  check('after a failure until it ends well: what it did in all of its starts lands', async () => {
    put('n', '1\n')
    const { status, out, err } = await sh(failing(3), '--restart', 'on-failure')
    expect([status, out]).toEqual([0, 'start 1\nstart 2\nstart 3\n'])
    expect(err).toMatch(/committed as .*\n {2}the agent was started again 2 times\n/)
    expect(text('n')).toBe('4\n')
  })

  check('as often as it may, and its last end is the one that counts', async () => {
    put('n', '1\n')
    const { status, out } = await sh(failing(9), '--restart', 'on-failure:2', '--json')
    expect(status).toBe(7)
    const outcome = JSON.parse(out.replace(/^start .*\n/gm, '')) as { state: string; exit: object }
    expect(outcome).toMatchObject({ state: 'held', exit: { code: 7, cause: 'exited', restarts: 2 } })
    expect(text('n')).toBe('1\n')
    put('n', '1\n')
    expect((await sh(failing(9))).out, 'control: once').toBe('start 1\n')
    put('n', '1\n')
    expect((await sh(failing(1), '--restart', 'always:1')).out).toBe('start 1\nstart 2\n')
  })

  check('within its budgets: they go on through all of its starts', async () => {
    put('n', '1\n')
    const wall = await sh(failing(99), '--restart', 'always', '--budget', 'wall=2s')
    expect([wall.status, wall.err]).toEqual([124, expect.stringContaining('The wall budget is used up')])
    expect(wall.err).toMatch(/the agent was started again \d+ times/)
    const programs = await sh('/bin/true; exit 1', '--restart', 'on-failure', '--budget', 'exec=5')
    expect([programs.status, programs.err]).toEqual([124, expect.stringContaining('exec budget')])
  })

  check('but not when it is gone: that is said', async () => {
    put('program', '#!/bin/sh\nrm program; exit 3\n')
    chmodSync(file('program'), 0o755)
    const { status, err } = await here.puzzlectl('run', '--restart', 'on-failure', '--', './program')
    expect([status, err]).toEqual([127, expect.stringContaining('could not be started again: ENOENT')])
    expect(readFileSync(file('program'), 'utf8')).toContain('rm program')
  })

  check('and a word that is none is refused before anything is made', async () => {
    const { status, err } = await sh('true', '--restart', 'sometimes')
    expect([status, err]).toEqual([
      2,
      expect.stringMatching(/--restart sometimes is not known\n.*on-failure:5/),
    ])
  })
})

describe('an agent that is started again by the daemon', () => {
  const { here, it } = onBus('each')
  const { developer } = WHO
  const puzzlectl = (...args: string[]) => here.puzzlectl(developer, ...args)
  const detach = async (policy: string, script: string): Promise<string> => {
    const { out, err } = await puzzlectl('run', '-d', '--restart', policy, '--', 'sh', '-c', script)
    expect(err).toBe('')
    return out.trim()
  }
  const show = async (id: string): Promise<BranchRecord> =>
    JSON.parse((await puzzlectl('show', id, '--json')).out)
  /** Long enough to do something in it. */
  const longPause = (id: string) =>
    eventually(async () => {
      const record = await show(id)
      if ((record.restarted?.pauseMillis ?? 0) < 1600) throw new Error('Not yet')
      return record
    })

  it('is seen to be: in show, events, the audit log and what it wrote', async () => {
    const id = await detach('on-failure:20', 'echo begun; kill -SEGV $$')
    const { state, restart, restarted } = await longPause(id)
    expect([state, restart]).toEqual(['running', { when: 'on-failure', times: 20 }])
    expect(restarted).toMatchObject({ code: null, signal: 'SIGSEGV', restart: expect.any(Number) })
    expect((await puzzlectl('show', id)).out).toMatch(
      /restart +on-failure, at most 20 times; ended ([5-9]|1\d) times, .* ago with signal SIGSEGV/,
    )
    const lines = (await puzzlectl('events', '--json', '--branch', id)).out.trim().split('\n')
    const events = lines.map((line) => JSON.parse(line) as PuzzledEvent)
    const pauses = events.flatMap((event) => (event.kind === 'restart' ? [event.pauseMillis] : []))
    expect(pauses.slice(0, 5)).toEqual([100, 200, 400, 800, 1600])
    const { out } = await here.puzzlectl(WHO.root, 'audit', 'trace', '--state-dir', here.state, '--json', id)
    const records = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; facts: object })
    expect(records.filter(({ kind }) => kind === 'restart').map(({ facts }) => facts)).toContainEqual({
      ...{ code: null, signal: 'SIGSEGV', restart: 5, pauseMillis: 1600 },
    })
    expect((await puzzlectl('logs', id)).out).toMatch(/^(begun\n){5,}$/)
  })

  it('can be joined, frozen and ended in a pause', async () => {
    const id = await detach('always', 'exit 4')
    await longPause(id)
    expect(await puzzlectl('exec', id, '--', 'sh', '-c', 'echo joined')).toMatchObject({
      status: 0,
      out: 'joined\n',
    })
    expect((await puzzlectl('freeze', id)).status).toBe(0)
    const before = (await show(id)).restarted
    await setTimeout(4000)
    expect((await show(id)).restarted, 'frozen').toEqual(before)
    expect((await puzzlectl('thaw', id)).status).toBe(0)
    await longPause(id)
    const began = performance.now()
    expect((await puzzlectl('signal', id, 'TERM')).status).toBe(0)
    expect((await puzzlectl('wait', id)).status).toBe(4)
    expect(performance.now() - began, 'nothing was waited for').toBeLessThan(9_000)
  })

  it('ends with what joined it', async () => {
    const id = await detach('on-failure:1', 'while [ ! -e go ]; do sleep 0.1; done; sleep 0.5; exit 5')
    const joined = puzzlectl('exec', id, '--', 'sh', '-c', 'touch go; sleep 600')
    expect((await joined).status).toBe(137)
    expect((await puzzlectl('wait', id)).status).toBe(5)
  })

  it('is ended with the daemon in a pause as well', async () => {
    const id = await detach('always', 'exit 6')
    await longPause(id)
    await end(here.daemon, 'SIGTERM')
    await here.start()
    const { state, exit } = await show(id)
    expect([state, exit]).toEqual(['stopped', expect.objectContaining({ code: 6, cause: 'exited' })])
  })
})

describe('a signal to one that is started again', () => {
  const { here } = inProject()
  const { here: bus, it: onBusOnly } = onBus('all', noTypist)
  check('ends it for good, while it runs', async () => {
    const script = `exec python3 -c 'import os, signal; os.kill(os.getppid(), signal.SIGTERM); signal.pause()'`
    const { status } = await here.puzzlectl('run', '--restart', 'always:3', '--', 'sh', '-c', script)
    expect(status).toBe(143)
  })

  onBusOnly('as a key in a pause ends it as well', async () => {
    const command = ['run', '--restart', 'always', '--', 'sh', '-c', 'stty raw -echo; echo begun; exit 3']
    const steps = Array.from({ length: 20 }, (_, index) => ['begun', index < 2 ? 'x' : '\\x03']).flat()
    const words = typing(steps, process.execPath, PUZZLECTL, ...command)
    const { out } = await bus.exec(WHO.developer, words)
    // 130: the key came when the next one had begun and its terminal was not raw yet.
    expect(out).toMatch(/the agent was started again \d+ times\s+status (3|130)$/)
  })
})

const PUZZLECTL = new URL('../../dist/puzzlectl.js', import.meta.url).pathname
