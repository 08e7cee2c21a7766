import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect } from 'vitest'
import { requestOf, type TestBranch } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, parseReport } from './attack.ts'
import { branchFor, commandIn, launcher } from './harness.ts'

const check = needs(root, program('gcc'))

// With the defence switched off, by hand. Layers named to the overlay by their paths and not by descriptors: three of the
// five names fail (too long twice, a comma once). The place of the interpreter mounted in the branch: both commands run. Of
// what closes descriptors one is enough: without the two of the plan, init's own holds.

/** The same branch over another directory. */
function over(branch: TestBranch, base: string): TestBranch {
  chownSync(base, 1000, 1000)
  return {
    ...branch,
    base,
    record: { ...branch.record, cwd: base, bases: [{ ...branch.record.bases[0], path: base } as never] },
    mounts: branch.mounts.map((mount) => ({ ...mount, base, lowers: [base] })),
  }
}

describe('S3 bases with odd names', () => {
  const ODD: readonly (readonly [string, string])[] = [
    ['the longest name', 'n'.repeat(255)],
    ['what mount options are made of', 'a,b:c\\d=e,lowerdir=f'],
    ['what mountinfo writes in octal', 'a b\tc\nd#e'],
    ['quotes and what a shell would do', `"'$(id)\`id\`;*`],
    ['many levels', join(...Array.from({ length: 200 }, () => 'level-of-15-chr'))],
  ]
  check.for(ODD)('%s is a base like others', async ([, name]) => {
    const branch = branchFor()
    const base = join(branch.base, name)
    mkdirSync(base, { recursive: true })
    writeFileSync(join(base, 'old'), 'base\n')
    const ran = await commandIn(over(branch, base), ['sh', '-c', 'cat old; echo new > made; ls; pwd'])
    expect([ran.errors, ran.output]).toEqual(['', `base\nmade\nold\n${base}\n`])
    expect(readFileSync(join(branch.upper, 'made'), 'utf8')).toBe('new\n')
  })
})

describe('S3 programs and directories that lead outside', () => {
  check('an interpreter that is not in the branch runs nothing', async () => {
    const place = join(attackFolder(), 'interpreter')
    copyFileSync('/bin/sh', place)
    chmodSync(place, 0o755)
    const branch = branchFor()
    const script = join(branch.base, 'script')
    writeFileSync(script, `#!${place}\necho ran\n`, { mode: 0o755 })
    symlinkSync(place, join(branch.base, 'link'))
    // The control: outside, both run.
    expect(execFileSync(script, { encoding: 'utf8' })).toBe('ran\n')
    expect(execFileSync(join(branch.base, 'link'), ['-c', 'echo ran'], { encoding: 'utf8' })).toBe('ran\n')
    for (const command of ['./script', './link'])
      await expect(launcher.start(requestOf(branch, [command]))).rejects.toMatchObject({
        code: 'command-not-found',
      })
  })

  check('a name without a slash is looked for in the PATH of the agent alone', async () => {
    const branch = branchFor()
    writeFileSync(join(branch.base, 'ls'), '#!/bin/sh\necho planted\n', { mode: 0o755 })
    const asked = async (path: string) => {
      const ran = await commandIn(branch, ['ls'], { environment: { PATH: path } })
      return ran.output
    }
    // An empty entry is the working directory, there as anywhere: what it finds runs in the branch.
    expect(await asked(':/usr/bin')).toBe('planted\n')
    expect(await asked('/usr/bin')).toBe('ls\n')
  })
})

describe('S16 directories that hand on a group', () => {
  check('give the agent no group, and no program that has one', async () => {
    const branch = branchFor()
    const shared = join(branch.base, 'shared')
    mkdirSync(shared)
    chownSync(shared, 0, 0)
    chmodSync(shared, 0o2777)
    const act = 'cd shared; cp /usr/bin/id own; chmod 2755 own; stat -c "%a %u %g" own; ./own -g; mkdir d'
    const ran = await commandIn(branch, ['sh', '-c', act])
    // The kernel hands on the group as it always does, and takes the bit away from whoever is no member.
    expect(ran.output).toBe('755 1000 0\n1000\n')
    const made = statSync(join(branch.upper, 'shared', 'own'))
    expect([made.mode & 0o6000, made.uid]).toEqual([0, 1000])
  })
})

/** A whole program, as a careless script of root calls it. */
describe('S1 what a caller of puzzlectl left open', () => {
  const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
  const rooms: string[] = []
  afterEach(() => {
    for (const room of rooms.splice(0)) rmSync(room, { recursive: true, force: true })
  })
  const roomOf = (): { room: string; base: string } => {
    const room = mkdtempSync(join(tmpdir(), 'left-open-'))
    rooms.push(room)
    const base = join(room, 'base')
    mkdirSync(base)
    chmodSync(room, 0o755)
    copyFileSync(attack('descriptors'), join(base, 'descriptors'))
    chownSync(base, 1000, 1000)
    return { room, base }
  }

  check('control: another program of that script has it', () => {
    const left = openSync('/', 'r')
    const { base } = roomOf()
    const ran = spawnSync('setpriv', ['--reuid=1000', '--regid=1000', '--clear-groups', './descriptors'], {
      ...{ cwd: base, encoding: 'utf8' },
      stdio: ['ignore', 'pipe', 'inherit', left, left],
    })
    closeSync(left)
    expect(parseReport(ran.stdout)).toMatchObject({ 'fd-3': 'directory', 'fd-4': 'directory' })
  })

  check('is not handed on to the agent', () => {
    const left = openSync('/', 'r')
    const { room, base } = roomOf()
    const state = ['--state-dir', join(room, 'state')]
    const ran = spawnSync(process.execPath, [puzzlectl, 'run', ...state, '--', './descriptors'], {
      ...{ cwd: base, encoding: 'utf8' },
      stdio: ['ignore', 'pipe', 'inherit', left, left, left, left],
    })
    closeSync(left)
    expect(parseReport(ran.stdout)).toEqual({
      ...{ 'fd-0': 'stream', 'fd-1': 'stream', 'fd-2': 'stream' },
      ...{ cwd: base, 'raw-cwd': 'reachable' },
    })
  })

  check('a working directory that is gone is an error, and no way out', () => {
    const { room, base } = roomOf()
    const gone = join(base, 'gone')
    mkdirSync(gone)
    const script = `rmdir ${gone} && exec ${process.execPath} ${puzzlectl} run --state-dir ${join(room, 'state')} -- ./descriptors`
    const ran = spawnSync('sh', ['-c', script], { cwd: gone, encoding: 'utf8' })
    expect(ran.status).toBe(2)
    expect(ran.stdout).toBe('')
    expect(ran.stderr).toBe(
      'puzzlectl: The working directory does not exist any more\n' +
        '  hint: Change to a directory that exists, or give --base and --cwd.\n',
    )
    expect(() => rmdirSync(gone)).toThrow(/ENOENT/)
  })
})
