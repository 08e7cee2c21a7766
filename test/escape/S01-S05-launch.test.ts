import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { nativeFile } from '../../daemon/kernel/clone.ts'
import { roundsOf } from '../threats/counts.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport, startOutside } from './attack.ts'
import { branchFor, commandIn, inBranch } from './harness.ts'

const check = needs(root, program('gcc'))
const { rounds: LAUNCHES, timeout } = roundsOf('PUZZLED_ESCAPE_LAUNCHES')

describe('S1 leaked descriptors and working directory', () => {
  check('control: outside, the attack finds a descriptor that was left open', () => {
    const leaked = openSync('/', 'r')
    const text = execFileSync(attack('descriptors'), {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore', leaked],
    })
    closeSync(leaked)
    expect(parseReport(text)).toMatchObject({ 'fd-3': 'directory', 'raw-cwd': 'reachable' })
  })

  check('the agent has its three streams, and a directory inside its root', async () => {
    const { report, branch } = await inBranch('descriptors')
    expect(report).toEqual({
      'fd-0': 'stream',
      'fd-1': 'stream',
      'fd-2': 'stream',
      cwd: branch.base,
      'raw-cwd': 'reachable',
    })
  })
})

describe('S2 executables by their magic links', () => {
  check('control: outside, the executable of an ended process can be opened for writing', () => {
    const copy = join(attackFolder(), 'writable-program')
    execFileSync('cp', ['/bin/true', copy])
    expect(parseReport(outside([attack('probe'), 'write', copy]))).toEqual({ [copy]: 'OK' })
  })

  check('neither init nor anything else that is visible can be', async () => {
    const digest = (): string =>
      createHash('sha256')
        .update(readFileSync(nativeFile('init')))
        .digest('hex')
    const before = digest()
    const { report } = await inBranch('executable')
    expect(digest()).toBe(before)
    expect(report).toEqual({
      'direct-1': 'EACCES',
      'reopened-1': 'EACCES',
      'direct-2': 'EACCES',
      'reopened-2': 'EACCES',
    })
  })
})

describe('S4 the setup phase', () => {
  const hijack = (seconds: number, executable: string) =>
    startOutside([
      'setpriv',
      '--reuid=1000',
      '--regid=1000',
      '--clear-groups',
      attack('hijack'),
      executable,
      String(seconds),
      String(process.pid),
    ])

  check('control: the attack wins against an ordinary process of its user', async () => {
    const sleeper = startOutside([
      'setpriv',
      '--reuid=1000',
      '--regid=1000',
      '--clear-groups',
      '/bin/sleep',
      '1000',
    ])
    const { output, ended } = hijack(2, '/usr/bin/sleep')
    await ended
    sleeper.child.kill()
    await sleeper.ended
    expect(Number(parseReport(output()).won)).toBeGreaterThan(0)
  })

  check(
    `nobody can look into the child while it shares the daemon's memory (${LAUNCHES} launches)`,
    { timeout },
    async () => {
      const branch = branchFor()
      const { child, output, ended } = hijack(timeout / 1000, process.execPath)
      child.stdin?.end()
      for (let launch = 0; launch < LAUNCHES; launch++) await commandIn(branch, ['true'])
      child.kill('SIGINT')
      await ended
      const report = parseReport(output())
      expect(Number(report.won)).toBe(0)
      expect(Number(report.looked)).toBeGreaterThan(0)
    },
  )
})

describe('S5 capabilities', () => {
  const facts = (status: string): Record<string, string> =>
    Object.fromEntries(
      [...status.matchAll(/^(Cap\w+|NoNewPrivs|Seccomp|Groups):[ \t]*(.*?)[ \t]*$/gm)].map((match) => [
        match[1],
        match[2],
      ]),
    )

  check('control: outside, root has them', () => {
    expect(facts(outside(['cat', '/proc/self/status'])).CapBnd).not.toMatch(/^0+$/)
  })

  check.for([1000, 0])('the agent over a base of uid %i has none, in no set, and no group', async (owner) => {
    const branch = branchFor({ owner })
    writeFileSync(join(branch.base, 'x'), '')
    const { output } = await commandIn(branch, ['cat', '/proc/self/status'])
    const none = '0000000000000000'
    expect(facts(output)).toEqual({
      CapInh: none,
      CapPrm: none,
      CapEff: none,
      CapBnd: none,
      CapAmb: none,
      NoNewPrivs: '1',
      Seccomp: '2',
      Groups: expect.stringMatching(owner === 0 ? /^$/ : /^1000$/),
    })
  })
})
