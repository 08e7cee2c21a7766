import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { DEVELOPER, REVIEWER } from './cli.ts'
import { inProject } from './grounds.ts'

const { here, file, put, text, sh, branches } = inProject()

const jsonOf = (out: string): Record<string, unknown> => JSON.parse(out.trim().split('\n').at(-1) ?? '')

describe('run', () => {
  it('lands what the gate allows, as the requester would have written it', async () => {
    put('keep.txt', 'old\n')
    const { status, err } = await sh('echo new > made.txt; echo more >> keep.txt; mkdir d; rm -f nothing')
    expect(err).toMatch(/puzzled: branch \w+: \+2 ~1 -0 .*; committed as c\w+/)
    expect(status).toBe(0)
    expect(text('made.txt')).toBe('new\n')
    expect(text('keep.txt')).toBe('old\nmore\n')
    expect(lstatSync(file('made.txt')).uid).toBe(DEVELOPER)
    expect(readdirSync(here.project).sort()).toEqual(['d', 'keep.txt', 'made.txt'])
  })

  it('passes output and exit status through, and leaves nothing when nothing changed', async () => {
    const { status, out, err } = await sh('echo to stdout; echo to stderr >&2; exit 7')
    expect(status).toBe(7)
    expect(out).toBe('to stdout\n')
    expect(err).toMatch(/^to stderr\npuzzled: branch \w+: no changes; nothing to commit\n/)
    expect((await branches()).filter(({ state }) => state !== 'discarded')).toEqual([])
  })

  it.each([
    ['a command that does not exist', ['no-such-command'], 127],
    ['a file that is not executable', ['./data.txt'], 126],
    ['a signal', ['sh', '-c', 'kill -TERM $$'], 143],
  ])('ends like a shell for %s', async (_what, command, expected) => {
    put('data.txt', 'no program\n')
    const { status, err } = await here.puzzlectl('run', '--', ...command)
    expect([status, err]).toEqual([expected, expect.any(String)])
    expect(readdirSync(here.project)).toEqual(['data.txt'])
  })

  it('keeps the work of an agent that failed for a person to look at', async () => {
    const { status, err } = await sh('echo half > made.txt; exit 3')
    expect(status).toBe(3)
    expect(err).toContain('agent-failed')
    expect(err).toMatch(/next: puzzlectl review \w+ \(or diff, approve, reject\)/)
    expect(existsSync(file('made.txt'))).toBe(false)
    expect(await branches()).toMatchObject([{ state: 'held' }])
  })

  it('throws away what is asked to be thrown away', async () => {
    const { status } = await sh('rm -rf ./* && echo x > y', '--then', 'discard')
    expect(status).toBe(0)
    expect(readdirSync(here.project)).toEqual([])
  })

  it('speaks JSON', async () => {
    const { out } = await sh('echo hi > a', '--json')
    expect(jsonOf(out)).toMatchObject({
      state: 'committed',
      totals: { additions: 1 },
      exit: { code: 0, signal: null },
    })
  })
})

describe('the network', () => {
  it('holds writes for the commit and refuses what no rule allows', async () => {
    const { status, out, err } = await sh(
      'curl -sS -m 20 -o answer -w "%{http_code}\\n" -d "{}" https://api.github.com/repos/a/b/issues; ' +
        'curl -s -m 20 -o /dev/null -w "%{http_connect}\\n" https://elsewhere.example/; rm -f answer',
    )
    expect(out).toBe('202\n403\n')
    expect(err).toMatch(/no changes|1 queued request/)
    expect(err).toContain('queued-request')
    expect(status).toBe(120)
    const shown = await here.puzzlectl('diff', '--stat', (await branches())[0]?.id ?? '')
    expect(shown.out).toContain('> POST api.github.com/repos/a/b/issues (2 B)')
    const id = (await branches())[0]?.id ?? ''
    const [queued] = JSON.parse((await here.puzzlectl('queue', 'ls', '--json', id)).out)
    expect(queued).toMatchObject({
      method: 'POST',
      url: 'https://api.github.com/repos/a/b/issues',
      state: 'queued',
    })
    expect((await here.puzzlectl('queue', 'show', id, queued.id)).out).toContain(
      'POST https://api.github.com/repos',
    )
    // An edit is another digest: it is judged again, and what was reviewed before cannot be approved.
    const before = JSON.parse((await here.puzzlectl('show', '--json', id)).out).digest
    const edit = ['--body', 'body.json', '--header', 'Accept: a/b'] as const
    put('body.json', '{"title":"mine"}')
    expect((await here.puzzlectl('queue', 'edit', ...edit, id, queued.id)).status).toBe(0)
    expect((await here.puzzlectl('queue', 'show', id, queued.id)).out).toMatch(
      /accept: a\/b[\s\S]*"title": "mine"/,
    )
    expect(JSON.parse((await here.puzzlectl('show', '--json', id)).out).digest).not.toBe(before)
    const stale = await here.asUser(REVIEWER, 'approve', '--digest', before, id)
    expect([stale.status, stale.err]).toEqual([122, expect.stringContaining('no longer what was reviewed')])
    const away = await here.puzzlectl('queue', 'edit', '--url', 'https://elsewhere.example/', id, queued.id)
    expect([away.status, away.err]).toEqual([121, expect.stringContaining('would not be queued')])
    const test = await here.puzzlectl('net', 'test', id, 'POST', 'https://api.github.com/repos/a/b/issues')
    expect([test.status, test.out]).toEqual([0, expect.stringContaining(`of branch ${id}`)])
    expect((await here.puzzlectl('queue', 'drop', id, queued.id)).status).toBe(0)
    expect((await here.puzzlectl('diff', '--stat', id)).out).not.toContain('POST')
  })
})

describe('budgets', () => {
  it('end an agent that nobody could be asked about, and keep its work', async () => {
    const { status, err } = await sh('echo kept > a; sleep 30', '--budget', 'wall=1s')
    expect([status, err]).toEqual([124, expect.stringContaining('agent-failed')])
    expect(err).toMatch(/the agent did not end well: The wall budget is used up \([\d.]+ s of 1 s\)/)
    expect(await branches()).toMatchObject([{ state: 'held' }])
  })

  it.each([
    ['disk=1M', 'head -c 8000000 /dev/zero > big', /The disk budget was passed \(\S+ MiB of \S+ MiB\)/],
    ['inodes=100', 'for f in $(seq 200); do : > f$f; done', /The inodes budget was passed \(\d+ of 100\)/],
  ])('of %s hold what an agent wrote before anybody could look', async (budget, script, said) => {
    const { status, err } = await sh(script, '--budget', budget, '--name', 'fast')
    expect(readdirSync(here.project)).toEqual([])
    const shown = await here.puzzlectl('show', 'fast')
    if (shown.out.includes('measured now and then')) {
      expect([status, err]).toEqual([124, expect.stringMatching(said)])
      expect(shown.out).toMatch(said)
    } else {
      // A project quota refuses the write that would pass the limit.
      expect(status).not.toBe(0)
      expect(err).toMatch(/No space left on device|The (disk|inodes) budget is used up/)
    }
    // The same with room enough lands.
    expect((await sh(script, '--budget', budget.replace('=1', '=90'))).status).toBe(0)
    expect(readdirSync(here.project)).not.toEqual([])
  })

  it('are named as the reason also where nothing was written', async () => {
    const { status, err } = await sh('for i in $(seq 40); do /bin/true; done', '--budget', 'exec=20')
    expect([status, err]).toEqual([
      124,
      expect.stringMatching(/no changes.*\n {2}budget The exec budget is used up/),
    ])
  })
})

describe('decisions', () => {
  it('a held branch lands when another person approves it, once, and can be reverted', async () => {
    put('a.txt', 'one\n')
    const held = await sh('echo two > a.txt; echo b > b.txt', '--then', 'hold', '--name', 'fix')
    expect(held.status).toBe(0)
    expect(text('a.txt')).toBe('one\n')
    const shown = await here.puzzlectl('diff', 'fix')
    expect(shown.out).toContain('-one')
    expect(shown.out).toContain('+two')
    const approved = await here.asUser(REVIEWER, 'approve', 'fix', '-m', 'looks right')
    expect([approved.status, approved.out]).toEqual([0, expect.stringContaining('committed as')])
    expect(text('a.txt')).toBe('two\n')
    const commit = /committed as (c\w+)/.exec(approved.out)?.[1] ?? ''
    const again = await here.asUser(REVIEWER, 'approve', 'fix')
    expect(again.status).not.toBe(0)
    const reverted = await here.puzzlectl('revert', commit)
    expect([reverted.status, reverted.err]).toEqual([0, ''])
    expect(text('a.txt')).toBe('one\n')
    expect(existsSync(file('b.txt'))).toBe(false)
  })

  it('nobody loses work when the base changed meanwhile', async () => {
    put('a.txt', 'one\n')
    await sh('echo agent > a.txt', '--then', 'hold', '--name', 'late')
    put('a.txt', 'the editor saved this\n')
    const approved = await here.asUser(REVIEWER, 'approve', 'late')
    expect([approved.status, approved.err]).toEqual([
      122,
      expect.stringContaining('no longer what was reviewed'),
    ])
    await here.puzzlectl('review', '--judge', 'late')
    const again = await here.asUser(REVIEWER, 'approve', 'late')
    expect([again.status, again.out]).toEqual([122, expect.stringMatching(/conflict.*a\.txt/s)])
    expect(text('a.txt')).toBe('the editor saved this\n')
    expect(await branches()).toMatchObject([{ state: 'held' }])
  })

  it('a part lands, the rest stays', async () => {
    await sh('echo a > a.txt; echo b > b.txt', '--then', 'hold', '--name', 'parts')
    const { status } = await here.asUser(REVIEWER, 'approve', 'parts', '--only', 'a.txt')
    expect(status).toBe(0)
    expect(readdirSync(here.project)).toEqual(['a.txt'])
    const rest = await here.puzzlectl('diff', 'parts', '--name-only')
    expect(rest.out).toBe('b.txt\n')
  })

  it('a part of what is denied lands by a verdict of its own, and is not called denied', async () => {
    await sh('echo a > a.txt; ln -s /etc/passwd out; mkfifo pipe', '--then', 'hold', '--name', 'parts')
    expect((await here.asUser(REVIEWER, 'approve', 'parts')).status).toBe(121)
    const part = await here.asUser(REVIEWER, 'approve', 'parts', '--except', 'pipe')
    expect(part.out).toMatch(
      /^puzzled: branch parts: \+2 ~0 -0 .*; a part was committed as c\w+; the rest is/,
    )
    expect([part.status, part.out]).toEqual([0, expect.not.stringMatching(/denied|symlink-outside/)])
    expect(readdirSync(here.project)).toEqual(['a.txt', 'out'])
    const [landed] = JSON.parse((await here.puzzlectl('blame', file('out'), '--json')).out) as unknown[]
    expect(landed).toMatchObject({ verdict: 'hold' })
  })

  it('of two agents the first commit wins', async () => {
    put('a.txt', 'one\n')
    await sh('echo first > a.txt', '--then', 'hold', '--name', 'first')
    await sh('echo second > a.txt', '--then', 'hold', '--name', 'second')
    expect((await here.asUser(REVIEWER, 'approve', 'first')).status).toBe(0)
    expect((await here.asUser(REVIEWER, 'approve', 'second')).status).toBe(122)
    expect(text('a.txt')).toBe('first\n')
  })

  it('what is rejected or discarded never lands', async () => {
    await sh('echo a > a.txt', '--then', 'hold', '--name', 'bad')
    expect((await here.asUser(REVIEWER, 'reject', 'bad', '-m', 'no')).status).toBe(0)
    await sh('echo a > a.txt', '--then', 'hold', '--name', 'worse')
    expect((await here.puzzlectl('discard', 'worse')).status).toBe(0)
    expect(readdirSync(here.project)).toEqual([])
  })

  it('persistence in a git hook is not landed by itself', async () => {
    await sh('git init -q . && echo "#!/bin/sh" > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit')
    expect(existsSync(file('.git/hooks/pre-commit'))).toBe(false)
  })
})

describe('mistakes', () => {
  it.each([
    [['show', 'nothing'], 68],
    [['run', '--profile', 'no-such-profile', '--', 'true'], 65],
    [['run', '--base', '/', '--', 'true'], 66],
    [['run', '--base', '/no/such/dir', '--', 'true'], 66],
    [['run', '--budget', 'wall=soon', '--', 'true'], 2],
    [['run', '--then', 'maybe', '--', 'true'], 2],
    [['frobnicate'], 2],
  ])('%j is one sentence, a hint and status %d', async (args, status) => {
    const ended = await here.puzzlectl(...args)
    expect([ended.status, ended.out]).toEqual([status, ''])
    expect(ended.err).not.toMatch(/ at .*\.js:\d+/)
  })
})
