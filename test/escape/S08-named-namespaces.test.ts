import { execFileSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect } from 'vitest'
import { without } from '../../daemon/prove/without.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { run } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport } from './attack.ts'
import { branchFor, inBranch } from './harness.ts'

const check = needs(root, program('gcc'))
const KINDS = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'uts']
const each = (act: string, answer: string) =>
  Object.fromEntries(KINDS.map((kind) => [`${act}-${kind}`, answer]))

const pinned: string[] = []
afterEach(() => {
  for (const path of pinned.splice(0)) execFileSync('umount', [path])
})

/** A file that names the network that our parent is in, the host's, as `ip netns` makes them. */
function pin(path: string): string {
  writeFileSync(path, '')
  execFileSync('mount', ['--bind', `/proc/${process.ppid}/ns/net`, path])
  pinned.push(path)
  return path
}

describe('S8 namespaces that have a name', () => {
  check('control: outside, root opens, joins and pins all of them', () => {
    const name = pin(join(attackFolder(), 'named'))
    const report = parseReport(outside([attack('namespaces'), String(process.ppid), name]))
    expect([...new Set(Object.values(report))]).toEqual(['OK'])
  })

  check('those of init cannot be opened, and none can be joined or pinned', async () => {
    const { report } = await inBranch('namespaces', ['1'])
    expect(report).toEqual({ ...each('open', 'EACCES'), ...each('join', 'EPERM'), 'pin-own': 'EPERM' })
  })

  check('control: without the filters and with the capabilities of root, they are joined', async () => {
    const branch = branchFor()
    const launcher = new Launcher({ planner: without(['seccomp', 'capabilities', 'landlock']) })
    copyFileSync(attack('namespaces'), join(branch.base, 'namespaces'))
    const { output } = await run(launcher, branch, ['./namespaces', '1'])
    expect(parseReport(output)).toMatchObject({ ...each('join', 'OK'), 'pin-own': 'OK' })
  })
})
