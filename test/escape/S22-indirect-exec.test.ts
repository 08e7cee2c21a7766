import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import type { Profile } from '../../daemon/contract/profile.ts'
import { LOADERS } from '../../daemon/sandbox/root-facts.ts'
import type { TestBranch } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport } from './attack.ts'
import { branchFor, commandIn } from './harness.ts'

const loader = LOADERS.find((path) => existsSync(path)) ?? LOADERS[0]
const check = needs(root, program('gcc'))
const grant = (path: string) => ({ path, why: 'for the attack' })

async function attempt(
  tool: (branch: TestBranch) => string,
  exec: (branch: TestBranch) => Profile['exec'],
): Promise<Record<string, string>> {
  const branch = branchFor()
  copyFileSync(attack('indirect'), join(branch.base, 'indirect'))
  const profile = { ...branch.record.profile.resolved, exec: exec(branch) }
  const argv = [join(branch.base, 'indirect'), tool(branch), loader, '/tmp']
  return parseReport((await commandIn(branch, argv, { profile })).output)
}

const WAYS = [
  'execve',
  'execveat',
  'proc-fd',
  'proc-fd-path',
  'memfd',
  'tmpfile',
  'copy',
  'symlink',
  'hardlink',
  'interpreter',
  'shell',
  'shell-compound',
  'loader',
]

describe('S22 executing by indirection', () => {
  check('control: outside, every way runs the tool', () => {
    const tool = join(attackFolder(), 'echo')
    copyFileSync('/bin/echo', tool)
    const report = parseReport(outside([attack('indirect'), tool, loader, attackFolder()]))
    expect(report).toEqual({
      ...Object.fromEntries(WAYS.map((way) => [way, 'OK'])),
      // Sealed against execution by its maker: the kernel refuses this one to anybody.
      'memfd-sealed': 'EACCES',
    })
  })

  check('a program that is denied cannot be read, and so runs in no way', async () => {
    const report = await attempt(
      () => '/bin/echo',
      () => ({ allow: 'any', deny: [grant('/bin/echo')] }),
    )
    // The loader itself is executed, and then cannot open the tool: it has nothing to report.
    const ways = [...WAYS, 'memfd-sealed'].filter((way) => way !== 'loader')
    const refused = Object.fromEntries(ways.map((way) => [way, 'EACCES']))
    expect(report).toEqual({ ...refused, hardlink: 'EXDEV' })
  })

  check('a program that is not on the list runs in no way but by a loader, which may read it', async () => {
    const report = await attempt(
      (branch) => {
        copyFileSync('/bin/echo', join(branch.base, 'echo'))
        return join(branch.base, 'echo')
      },
      (branch) => ({ allow: [grant('/usr/bin'), grant(join(branch.base, 'indirect'))], deny: [] }),
    )
    const refused = [...WAYS, 'memfd-sealed'].map((way) => [way, 'EACCES'])
    expect(report).toEqual({
      ...Object.fromEntries(refused),
      memfd: 'EPERM',
      hardlink: 'EXDEV',
      loader: 'OK',
    })
  })

  check('programs on the list run', async () => {
    const branch = branchFor()
    const exec = { allow: [grant('/usr/bin')], deny: [] }
    const profile = { ...branch.record.profile.resolved, exec }
    const ran = await commandIn(branch, ['sh', '-c', 'echo on the list | tr a-z A-Z'], { profile })
    expect(ran.output).toBe('ON THE LIST\n')
  })
})
