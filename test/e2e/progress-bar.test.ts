import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { needs, root } from '../tier/needs.ts'
import type { Ended } from './cli.ts'
import { filesIn, inProject, onBus } from './grounds.ts'
import { end, WHO } from './private-bus.ts'
import { noTypist, typing } from './typist.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
/** So that each piece of work lasts for seconds on any machine, and goes on in steps. */
const SLOW = 'commit.staged-one=wait:300,undo.staging-removed=wait:700,diff.thousand=wait:700'
const FILES = 6
const MANY = 3000

const ANY_BAR = /\[[ =]{20}\]/
const bar = (what: string, far: string): RegExp => new RegExp(`\\r\\[[ =]{20}\\] ${what}, ${far}, \\d+ s`)
/** What stays on the screen: of each line what was written since it was last cleared, without colours. */
const staysOf = (shown: string): string =>
  shown
    .split('\n')
    .map((line) => line.replace(/\r$/, '').split('\r\u001b[K').at(-1))
    .join('\n')
    .replaceAll(/\u001b\[[\d;]*m/g, '')
const commitOf = (text: string): string => /committed as (c\w+)/.exec(text)?.[1] ?? 'none'

interface Ground {
  project(): string
  /** Output and errors are pipes. */
  piped(...args: string[]): Promise<Ended>
  /** At a terminal: all that was shown. */
  shown(...args: string[]): Promise<string>
}
const atTerminal = (...args: string[]): readonly string[] =>
  typing([], 'env', 'TERM=xterm', 'PAGER=cat', process.execPath, puzzlectl, ...args)

/** A branch that changes so many files, which the project has already: a revert has something to bring back. */
async function held({ piped, project }: Ground, files: number): Promise<string> {
  filesIn(project(), files)
  const script = ['sh', '-c', `for name in $(seq ${files}); do echo new > $name; done`]
  const { out } = await piped('run', '--json', '--then', 'hold', '--', ...script)
  return (JSON.parse(out) as { branch: string }).branch
}

async function drawsAndTakesAway(ground: Ground): Promise<void> {
  const compared = await ground.shown('diff', '--stat', await held(ground, MANY))
  expect(compared).toMatch(bar('comparing', '\\d000 paths'))
  expect(staysOf(compared)).toMatch(/^~ 1 {2}4 B\n.*status 0$/s)
  const landed = await ground.shown('approve', await held(ground, FILES))
  expect(landed).toMatch(bar('committing', '\\d+ %'))
  expect(staysOf(landed)).toMatch(/^puzzled: branch .* committed as c\w+\n +next: .*\nstatus 0$/)
  const reverted = await ground.shown('revert', commitOf(landed))
  expect(reverted).toMatch(bar('reverting', '\\d+ %'))
  expect(staysOf(reverted)).toMatch(/^puzzled: commit \w+ taken back: .*\n +next: .*\nstatus 0$/)
  for (const text of [compared, landed, reverted]) expect(staysOf(text)).not.toMatch(ANY_BAR)
}

async function isSilent(ground: Ground): Promise<void> {
  const compared = await ground.piped('diff', '--stat', await held(ground, MANY))
  const landed = await ground.piped('approve', await held(ground, FILES))
  const reverted = await ground.piped('revert', commitOf(landed.out))
  for (const { status, out, err } of [compared, landed, reverted]) {
    expect([status, err]).toEqual([0, ''])
    expect(out).not.toMatch(/\r|\[[ =]{20}\]/)
  }
}

describe('work of a daemon that lasts', () => {
  const { here, it } = onBus('each', noTypist)
  const ground: Ground = {
    project: () => here.project,
    piped: (...args) => here.puzzlectl(WHO.root, ...args),
    shown: async (...args) => (await here.exec(WHO.root, atTerminal(...args))).out,
  }
  const slow = async (config = ''): Promise<void> => {
    await end(here.daemon, 'SIGTERM')
    writeFileSync(here.config, config, { flag: 'a' })
    await here.start(SLOW)
  }

  it('is drawn at a terminal, and the line is taken away', async () => {
    await slow()
    await drawsAndTakesAway(ground)
  })

  it('is not drawn where errors are no terminal', async () => {
    await slow()
    await isSilent(ground)
  })

  it('is drawn of gc, too', async () => {
    await slow('retention: { commits: 0 }\n')
    for (const name of ['a', 'b', 'c', 'd'])
      expect((await ground.piped('run', '--', 'touch', name)).status).toBe(0)
    const removed = await ground.shown('gc')
    expect(removed).toMatch(bar('removing', '\\d+ %'))
    expect(staysOf(removed)).toMatch(/^Removed .* 4 reverse changesets \(.*\)\.\nstatus 0$/)
  })
})

describe('work of this process that lasts', () => {
  const it = needs(root, noTypist)
  const { here } = inProject()
  const exec = ([program = '', ...args]: readonly string[]): Promise<Ended> =>
    new Promise((resolve, reject) => {
      const env = { PATH: process.env.PATH, HOME: '/root', PUZZLED_FAILPOINTS: SLOW }
      const child = spawn(program, args, { cwd: here.project, env, stdio: ['ignore', 'pipe', 'pipe'] })
      const ended: Ended = { status: null, out: '', err: '' }
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        ended.out += text
      })
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        ended.err += text
      })
      child.on('error', reject).on('close', (status) => resolve({ ...ended, status }))
    })
  const placed = ([verb = '', ...rest]: readonly string[]): string[] => [
    ...[verb, '--state-dir', here.state],
    ...rest,
  ]
  const ground: Ground = {
    project: () => here.project,
    piped: (...args) => exec([process.execPath, puzzlectl, ...placed(args)]),
    shown: async (...args) => (await exec(atTerminal(...placed(args)))).out,
  }

  it('is drawn at a terminal, and the line is taken away', () => drawsAndTakesAway(ground))

  it('is not drawn where errors are no terminal', () => isSilent(ground))
})
