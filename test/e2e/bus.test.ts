import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'
import { noTypist, typing } from './typist.ts'

const { here, it } = onBus('each', noTypist, program('curl'))

const { developer, colleague, reviewer } = WHO
const file = (name: string): string => join(here.project, name)
const text = (name: string): string => readFileSync(file(name), 'utf8')
const sh = (script: string, ...options: string[]) =>
  here.puzzlectl(developer, 'run', ...options, '--', 'sh', '-c', script)
const linesOf = (out: string): unknown => JSON.parse(out)

describe('through the daemon', () => {
  it('an ordinary member of the group runs an agent and its work lands', async () => {
    const { status, out, err } = await sh('echo to stdout; echo to stderr >&2; echo new > made.txt')
    expect([status, out]).toEqual([0, 'to stdout\n'])
    expect(err).toMatch(/to stderr\npuzzled: branch \w+: \+1 ~0 -0 .*; committed as c\w+/)
    expect(text('made.txt')).toBe('new\n')
    expect(lstatSync(file('made.txt')).uid).toBe(developer.uid)
    expect(existsSync(join(here.state, 'branches'))).toBe(true)
  })

  it('is held, shown, approved by another person, and reverted', async () => {
    expect((await sh('echo a > a.txt', '--then', 'hold', '--name', 'fix')).status).toBe(0)
    expect(readdirSync(here.project)).toEqual([])
    const listed = linesOf((await here.puzzlectl(developer, 'ls', '--json')).out)
    expect(listed).toMatchObject([{ name: 'fix', state: 'held' }])
    const shown = linesOf((await here.puzzlectl(developer, 'show', 'fix', '--json')).out)
    expect(shown).toMatchObject({ requester: { uid: developer.uid }, exit: { code: 0 } })
    expect((await here.puzzlectl(developer, 'diff', 'fix')).out).toContain('+a')
    const own = await here.puzzlectl(developer, 'approve', 'fix')
    expect([own.status, own.err]).toEqual([77, expect.stringContaining('may not approve')])
    const approved = await here.puzzlectl(reviewer, 'approve', 'fix', '-m', 'fine')
    expect([approved.status, approved.err]).toEqual([0, ''])
    expect(text('a.txt')).toBe('a\n')
    const commit = /committed as (c\w+)/.exec(approved.out)?.[1] ?? ''
    const reverted = await here.puzzlectl(developer, 'revert', commit)
    expect([reverted.status, reverted.err]).toEqual([0, ''])
    expect(readdirSync(here.project)).toEqual([])
  })

  it('shows what the network rules say, and lets the requester edit a request that waits', async () => {
    await sh('curl -sS -m 20 -o /dev/null -d "{}" https://api.github.com/repos/a/b/issues', '--name', 'asks')
    const net = (...args: string[]) => here.puzzlectl(developer, 'net', 'test', ...args)
    const answer = await net('asks', 'POST', 'https://api.github.com/repos/a/b/issues')
    expect([answer.status, answer.out]).toEqual([
      0,
      expect.stringMatching(/^queue by rule ".*" of branch asks/),
    ])
    expect((await net('--json', 'asks', 'GET', 'https://elsewhere.example/')).status).toBe(121)
    const [{ id }] = linesOf((await here.puzzlectl(developer, 'queue', 'ls', 'asks', '--json')).out) as [
      { id: string },
    ]
    const edit = ['queue', 'edit', 'asks', id, '--body', '-', '--header', 'accept: x/y'] as const
    // Whoever decides about a branch does not write it: nobody approves alone what they made up.
    expect((await here.puzzlectl(reviewer, ...edit)).status).toBe(77)
    expect((await here.puzzlectl(developer, ...edit)).status).toBe(0)
    const shown = await here.puzzlectl(developer, 'queue', 'show', 'asks', id)
    expect(shown.out).toMatch(/accept: x\/y/)
    const digest = async (): Promise<string> =>
      (linesOf((await here.puzzlectl(developer, 'show', 'asks', '--json')).out) as { digest: string }).digest
    const before = await digest()
    await here.puzzlectl(developer, 'queue', 'edit', 'asks', id, '--method', 'PUT')
    expect(await digest()).not.toBe(before)
    expect((await here.puzzlectl(reviewer, 'approve', 'asks', '--digest', before)).status).toBe(122)
  })

  it('removes what was discarded in the background', async () => {
    await sh('echo a > a.txt', '--then', 'hold', '--name', 'gone')
    expect((await here.puzzlectl(developer, 'discard', 'gone')).status).toBe(0)
    await expect.poll(() => readdirSync(join(here.state, 'trash'))).toEqual([])
  })

  it('ends like a shell and passes the status of the agent on', async () => {
    expect((await sh('exit 7')).status).toBe(7)
    expect((await sh('kill -TERM $$')).status).toBe(143)
    expect((await here.puzzlectl(developer, 'run', '--', 'no-such-command')).status).toBe(127)
  })

  it('gives an interactive agent a terminal of its own', async () => {
    const puzzlectl = `${process.execPath} ${new URL('../../dist/puzzlectl.js', import.meta.url).pathname}`
    const inner = `${puzzlectl} run -- sh -c 'tty; stty size; read -r line; echo "got $line"'`
    const { out } = await here.exec(developer, typing(['33 111', 'hello\\n'], 'sh', '-c', inner))
    expect(out).toContain('/dev/pts/')
    expect(out).toContain('33 111')
    expect(out).toContain('got hello')
    expect(out).toContain('no changes')
  })

  it('shows nobody the branches of others, except to reviewers', async () => {
    await sh('echo a > a.txt', '--then', 'hold', '--name', 'mine')
    const [{ id }] = linesOf((await here.puzzlectl(developer, 'ls', '--json')).out) as [{ id: string }]
    expect(linesOf((await here.puzzlectl(colleague, 'ls', '--json')).out)).toEqual([])
    expect(linesOf((await here.puzzlectl(reviewer, 'ls', '--json')).out)).toMatchObject([{ id }])
    for (const verb of ['show', 'diff', 'discard', 'commit', 'review']) {
      const { status, err } = await here.puzzlectl(colleague, verb, id)
      expect([verb, status, err]).toEqual([verb, 68, expect.stringMatching(/no branch/)])
    }
    expect((await here.puzzlectl(reviewer, 'discard', id)).status).toBe(77)
    expect((await here.puzzlectl(reviewer, 'diff', id)).status).toBe(0)
  })
})
