import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import type { Ended } from './cli.ts'
import { inProject, onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

let place: string
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'puzzled-patch-'))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

const git = (cwd: string, args: readonly string[], input = ''): string =>
  execFileSync('git', ['-c', 'safe.directory=*', ...args], {
    cwd,
    input,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: place, GIT_CEILING_DIRECTORIES: place },
  })

/** What git would call this tree. */
function treeId(folder: string): string {
  const repository = mkdtempSync(join(place, 'git-'))
  git(place, ['init', '-q', '--bare', repository])
  const there = [`--git-dir=${repository}`, `--work-tree=${folder}`]
  git(folder, [...there, 'add', '--all', '--force'])
  return git(folder, [...there, 'write-tree']).trim()
}

const BEFORE = `printf 'one\\ntwo\\n' > a.txt; printf 'old' > 'b c'; echo x > gone; ln -s a.txt link; mkdir d; echo y > d/f;
  head -c 300 /bin/sh > bin; echo z > run; printf secret > mode`
const AFTER = `printf 'one\\n2\\n' > a.txt; printf 'new' > 'b c'; rm gone; ln -sf 'd/f' link; rm -r d; echo was > d; : > empty;
  head -c 700 /bin/sh > bin; chmod +x run; echo q > "$(printf 'caf\\303\\251 "x"')"; mkdir -p e/f; ln -s /no e/f/l; chmod 600 mode`

/** The patch makes of a copy what the commit makes of the project. */
async function carries(project: string, puzzlectl: (...args: string[]) => Promise<Ended>): Promise<void> {
  execFileSync('sh', ['-ec', `${BEFORE}; chown -hR --reference . .`], { cwd: project })
  const copy = join(place, 'copy')
  cpSync(project, copy, { recursive: true, verbatimSymlinks: true })
  expect(await puzzlectl('run', '--name', 'work', '--then', 'hold', '--', 'sh', '-ec', AFTER)).toMatchObject({
    status: 0,
  })
  const patch = await puzzlectl('diff', '--patch', 'work')
  expect([patch.status, patch.err]).toEqual([
    0,
    expect.stringMatching(/^puzzlectl: not in the patch: .*mode \(only its owner/m),
  ])
  git(copy, ['apply', '-'], patch.out)
  expect(treeId(copy)).not.toBe(treeId(project))
  expect(await puzzlectl('approve', 'work')).toMatchObject({ status: 0 })
  expect(treeId(copy)).toBe(treeId(project))
}

const check = needs(root, program('git'))

describe('a patch says what the commit does', () => {
  const { here } = inProject()
  check('in this process', () => carries(here.project, (...args) => here.puzzlectl(...args)))

  check('and is one of three ways to look', async () => {
    expect(await here.puzzlectl('diff', '--patch', '--stat', 'x')).toMatchObject({ status: 2 })
  })
})

describe('a patch over the bus', () => {
  const { here, it } = onBus('each', program('git'))
  // Somebody else than the requester approves.
  it('is the same', () =>
    carries(here.project, (...args) =>
      here.puzzlectl(args[0] === 'approve' ? WHO.reviewer : WHO.developer, ...args),
    ))
})
