import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { needs } from '../tier/needs.ts'
import { REVIEWER } from './cli.ts'
import { inProject } from './grounds.ts'
import { noTypist, typing } from './typist.ts'

const program = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))

const { here, put, text, hold: held } = inProject()

const hold = (script: string) => held(script, '--name', 'work')

/** A reviewer at a terminal: waits for each text and types what follows it. */
function review(steps: readonly string[]): Promise<string> {
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: '/root', TERM: 'xterm', NO_COLOR: '1' },
    ...{ SUDO_UID: String(REVIEWER), SUDO_GID: String(REVIEWER), SUDO_USER: 'reviewer' },
  }
  const review = [process.execPath, program, 'review', '--state-dir', here.state, 'work']
  const [python = '', ...words] = typing(steps, ...review)
  const child = spawn(python, words, {
    cwd: here.project,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    out += more
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => resolve(out.replaceAll('\r\n', '\n')))
  })
}

const NUMBERS = Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join('')

const it = needs(noTypist)

describe('a review at a terminal', () => {
  it('asks about each change, what was found first, and commits what was taken', async () => {
    put('keep.txt', 'old\n')
    await hold(
      'echo a > a.txt; echo new > keep.txt; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo c > c.txt',
    )
    const out = await review([
      '\\(1/4\\)',
      'r',
      '\\(2/4\\)',
      'a',
      '\\(3/4\\)',
      'r',
      '\\(4/4\\)',
      'a',
      'commit \\[y',
      'y',
      'Why',
      'fine\\n',
    ])
    expect(out.indexOf('.git/hooks/pre-commit')).toBeLessThan(out.indexOf('+ a.txt'))
    expect(out).toMatch(/Taken: \+1 ~1 -0 .*; 2 left in branch work\ndigest [0-9a-f]{64}/)
    expect(out).toMatch(/committed as c\w+|a part was committed as c\w+/)
    expect(readdirSync(here.project).sort()).toEqual(['a.txt', 'keep.txt'])
    expect(text('keep.txt')).toBe('new\n')
    expect((await here.puzzlectl('diff', '--name-only', 'work')).out).toContain('c.txt')
  })

  it('takes single pieces of a file', async () => {
    put('numbers.txt', NUMBERS)
    await hold("sed -i 's/^2$/two/; s/^29$/twenty-nine/' numbers.txt")
    const out = await review([
      '\\(1/1\\)',
      's',
      'piece 1 of 2',
      'r',
      'piece 2 of 2',
      'a',
      'pieces \\[y',
      'y',
      'Why',
      '\\n',
    ])
    expect(out).toMatch(/branch \w+: \+0 ~1 -0 .* held/)
    expect(out).toMatch(/committed as c\w+\n/)
    expect(text('numbers.txt')).toBe(NUMBERS.replace('\n29\n', '\ntwenty-nine\n'))
    // The other piece is still in the branch, and can be done again over what landed.
    const rest = await here.puzzlectl('rebase', 'work')
    expect(rest.out).toMatch(/\+0 ~1 -0/)
  })

  it('ends without a decision on q, and leaves the terminal as it was', async () => {
    await hold('echo a > a.txt')
    const out = await review(['\\(1/1\\)', '?', 'single pieces[^$]*\\(1/1\\)', 'q'])
    expect(out).toContain('Nothing was decided.')
    expect(out).toContain('status 120')
    expect(JSON.parse((await here.puzzlectl('show', 'work', '--json')).out)).toMatchObject({ state: 'held' })
  })

  it('rejects what nothing is taken of, when that is confirmed', async () => {
    await hold('echo a > a.txt')
    const out = await review(['\\(1/1\\)', 'r', 'Reject .*\\[y', 'y', 'Why', 'no\\n'])
    expect(out).toContain('is rejected; nothing of it was committed')
    expect((await here.puzzlectl('show', 'work')).status).toBe(68)
  })
})

it('a review without a terminal is refused, and says what to type', async () => {
  await hold('echo a > a.txt')
  const { status, err } = await here.puzzlectl('review', 'work')
  expect([status, err]).toEqual([2, expect.stringContaining('puzzlectl review --judge work')])
  expect((await here.puzzlectl('review', '--judge', 'work')).status).toBe(120)
})
