import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeAll, expect } from 'vitest'
import { cgroupHierarchy, processesOf, removeCgroup } from '../../daemon/kernel/cgroup.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { SLICE, systemdCgroups } from '../../daemon/sandbox/systemd-cgroups.ts'
import { needs, root, systemd } from '../tier/needs.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'

// Where systemd owns the hierarchy, the real thing is tested in the VM tier.
const check = needs(root, systemd === undefined ? 'has systemd, which makes real scopes' : undefined)
const asked: string[] = []

/** Does by hand what systemd does: a directory, and the process in it, a moment after the answer. */
const cgroups = systemdCgroups(async (unit, pid) => {
  asked.push(unit)
  setTimeout(() => {
    const scope = join(cgroupHierarchy() ?? '', SLICE, unit)
    mkdirSync(scope, { recursive: true })
    writeFileSync(join(scope, 'cgroup.procs'), String(pid))
  }, 20)
})
const launcher = new Launcher({ cgroups })
let branch: TestBranch

beforeAll(async () => await warmUp(new Launcher()))
afterEach(() => branch?.remove())

check('an agent is born in a scope, beside the process that held it open', async () => {
  branch = makeBranch()
  const agent = await launcher.start(
    requestOf(branch, ['sleep', '100'], { stdio: { kind: 'inherit', fds: [0, 1, 2] } }),
  )
  const scope = dirname(agent.cgroup)
  expect(asked).toEqual([basename(scope)])
  expect(basename(scope)).toBe(`puzzle-${branch.record.id}.scope`)
  expect(processesOf(join(agent.cgroup, 'agent'))).toHaveLength(2)
  expect(processesOf(join(scope, 'hold')).length).toBeGreaterThan(0)
  await launcher.sweep(branch.record.id)
  expect(await agent.exited).toMatchObject({ signal: 'SIGKILL' })
  expect(existsSync(agent.cgroup)).toBe(false)
  expect(existsSync(join(scope, 'hold'))).toBe(false)
  // systemd would, as both are empty.
  expect(removeCgroup(dirname(scope))).toBe(true)
})

check('a scope that never comes is an error, and the process that waited for it is gone', async () => {
  branch = makeBranch()
  const refused = new Launcher({
    cgroups: systemdCgroups(async () => {
      throw new Error('Unit exists')
    }),
  })
  await expect(refused.start(requestOf(branch, ['true']))).rejects.toThrow('Unit exists')
})
