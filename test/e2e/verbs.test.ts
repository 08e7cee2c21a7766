import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inProject, onBus } from './grounds.ts'
import { eventually, WHO } from './private-bus.ts'

describe('a branch that runs', () => {
  const { here, it } = onBus('each')
  const puzzlectl = (...args: string[]) => here.puzzlectl(WHO.developer, ...args)
  const start = async (script: string): Promise<string> => {
    const { out } = await puzzlectl('run', '-d', '--', 'sh', '-c', script)
    return out.trim()
  }
  const stateOf = async (id: string): Promise<string> =>
    (JSON.parse((await puzzlectl('show', id, '--json')).out) as { state: string }).state

  it('stands still, goes on, and ends by a signal', async () => {
    const id = await start('exec sleep 600')
    expect((await puzzlectl('freeze', id)).out).toBe(`Branch ${id} is frozen as asked.\n`)
    expect(await stateOf(id)).toBe('frozen')
    expect((await puzzlectl('thaw', id)).out).toBe(`Branch ${id} goes on.\n`)
    expect(await stateOf(id)).toBe('running')
    expect((await puzzlectl('signal', id, 'TERM')).status).toBe(0)
    expect((await puzzlectl('wait', id)).status).toBe(143)
    const late = await puzzlectl('signal', id)
    // It changed nothing, so nothing of it is left to be signalled.
    expect([late.status, late.err]).toEqual([68, expect.stringContaining('There is no branch')])
  })

  it('is given more of a budget by name, and by nothing that is not one', async () => {
    const id = await start('exec sleep 600')
    const budget = (...args: string[]) => here.puzzlectl(WHO.reviewer, 'budget', ...args)
    // More than the profile gives is not for whoever asked for the agent.
    expect((await puzzlectl('budget', id, 'wall=10m')).status).toBe(77)
    const given = await budget(id, 'wall=10m', 'pids=5')
    expect([given.status, given.out]).toEqual([
      0,
      `Branch ${id} may use wall=10m more; it is running.\nBranch ${id} may use pids=5 more; it is running.\n`,
    ])
    const record = JSON.parse((await budget('--json', id, 'wall=1s')).out) as object
    expect(record).toMatchObject({ id, extensions: { wall: 601, pids: 5 } })
    for (const pair of ['wall=-1', 'wall', 'wall=soon', 'luck=1']) {
      const { status, err } = await budget(id, pair)
      expect([pair, status, err]).toEqual([pair, 2, expect.stringMatching(/^puzzlectl: .*\n {2}hint: /)])
    }
    expect((await budget('nothing', 'wall=1s')).status).toBe(68)
    expect((await here.puzzlectl(WHO.colleague, 'budget', id, 'wall=1s')).status).toBe(68)
    expect((await puzzlectl('discard', id)).status).toBe(0)
    expect((await budget(id, 'wall=1s')).status).toBe(68)
  })

  it('is waited for, and its work lands', async () => {
    const id = await start('sleep 1; echo a > a.txt')
    const { status, out } = await puzzlectl('wait', id)
    expect([status, out]).toEqual([0, expect.stringContaining('committed as')])
    expect(readdirSync(here.project)).toEqual(['a.txt'])
  })

  it('is waited for with others, and the first failure is the status', async () => {
    const failed = await start('sleep 1; exit 3')
    const landed = await start('echo a > a.txt')
    const killed = await start('kill -9 $$')
    const listed = await puzzlectl('ls', '--all', '--quiet')
    expect(listed.out.split('\n').sort()).toEqual(['', failed, landed, killed].sort())
    const all = await puzzlectl('wait', landed, failed, killed, '--json')
    const outcomes = all.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { branch: string })
    expect([all.status, outcomes.map(({ branch }) => branch).sort()]).toEqual([
      3,
      [failed, landed, killed].sort(),
    ])
    expect((await puzzlectl('wait', landed, killed, failed)).status).toBe(137)
    const some = await puzzlectl('wait', 'nothing', landed)
    expect([some.status, some.err, some.out]).toEqual([
      68,
      expect.stringContaining('There is no branch'),
      expect.stringContaining('committed as'),
    ])
  })

  it('is heard of while it happens', async () => {
    const connection = await here.connect()
    const { BusEngine } = await import('../../ctl/bus-engine.ts')
    const engine = await BusEngine.open(connection)
    const stop = new AbortController()
    const states: string[] = []
    const listening = (async () => {
      for await (const event of engine?.events({ branch: null }, stop.signal) ?? [])
        if (event.kind === 'state') states.push(event.to)
    })()
    await eventually(async () => {
      await puzzlectl('run', '--then', 'discard', '--', 'true')
      if (!states.includes('discarded')) throw new Error('Nothing was heard')
    })
    stop.abort()
    await listening
    await connection.close()
    expect(states).toEqual(expect.arrayContaining(['running', 'stopped', 'discarding', 'discarded']))
  })
})

describe('several at once', () => {
  const { here, hold } = inProject()
  const ids = async (...options: string[]): Promise<string> =>
    (await here.puzzlectl('ls', '-q', ...options)).out

  it('are listed by their ids alone, waited for, and thrown away though one is unknown', async () => {
    expect(await here.puzzlectl('ls', '-q')).toEqual({ status: 0, out: '', err: '' })
    await hold('echo a > a')
    await hold('echo b > b; exit 4')
    const [first = '', second = ''] = (await ids()).split('\n')
    expect((await here.puzzlectl('ls', '-q', '--json')).status).toBe(2)
    expect((await here.puzzlectl('wait', first, second)).status).toBe(4)
    const { status, out, err } = await here.puzzlectl('discard', first, 'nothing', second)
    expect([status, out]).toEqual([68, `Branch ${first} is discarded.\nBranch ${second} is discarded.\n`])
    expect(err).toContain('There is no branch "nothing"')
    expect(await ids('-a')).toBe('')
  })
})

describe('audit', () => {
  const { here } = inProject()
  const log = (): string => join(here.state, 'audit', '00000001.jsonl')
  const nested = (verb: string, ...args: string[]) => here.puzzlectl('audit', verb, ...args)

  it('verifies, proves, traces and exports what happened', async () => {
    const ended = await here.puzzlectl('run', '--json', '--', 'sh', '-c', 'echo a > a.txt')
    const { branch } = JSON.parse(ended.out) as { branch: string }
    expect((await nested('verify')).out).toMatch(
      /^\d+ records, \d+ signed heads: all fit\.\nroot [0-9a-f]{64}\n$/,
    )
    const traced = (await nested('trace', branch, '--json')).out.trim().split('\n')
    const kinds = traced.map((line) => (JSON.parse(line) as { kind: string }).kind)
    expect(kinds).toEqual(expect.arrayContaining(['start', 'exit', 'verdict', 'commit', 'committed']))
    const proof = JSON.parse((await nested('prove', '1')).out) as { seq: number; record: string }
    expect([proof.seq, readFileSync(log(), 'utf8').split('\n')[1]]).toEqual([1, proof.record])
    expect((await nested('export', '--format', 'cef')).out).toMatch(/^CEF:0\|puzzled\|puzzled\|/)
    expect((await nested('key')).out).toMatch(/^-----BEGIN PUBLIC KEY-----/)
  })

  it('names the record that was changed', async () => {
    await here.puzzlectl('run', '--', 'sh', '-c', 'echo a > a.txt')
    writeFileSync(log(), readFileSync(log(), 'utf8').replace('"kind":"start"', '"kind":"stXrt"'))
    const { status, out } = await nested('verify')
    expect([status, out]).toEqual([74, expect.stringMatching(/^Record \d+ is wrong: /)])
  })

  it('takes --json and --state-dir before the verb as well', async () => {
    expect(JSON.parse((await here.puzzlectl('--json', 'ls')).out)).toEqual([])
  })

  it('says where it looked when there is none', async () => {
    const { status, err } = await nested('verify')
    expect([status, err]).toEqual([74, expect.stringContaining(join(here.state, 'audit'))])
  })
})
