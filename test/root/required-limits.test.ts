import { existsSync } from 'node:fs'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { cgroupHierarchy, controllersOf } from '../../daemon/kernel/cgroup.ts'
import { directCgroups } from '../../daemon/sandbox/cgroups.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { type Missing, needs, root } from '../tier/needs.ts'
import { makeBranch, run, type TestBranch, warmUp } from './branch.fixture.ts'

const hierarchy = cgroupHierarchy()
const controllers: Missing =
  hierarchy !== undefined && controllersOf(hierarchy).includes('cpu')
    ? 'has a cpu controller (the VM tier shows that it holds)'
    : undefined
const check = needs(root, controllers)
const launcher = new Launcher()
let branch: TestBranch

beforeAll(async () => await warmUp(launcher))
afterEach(() => branch?.remove())

const resources = { cpus: 0.5, cpuWeight: 50, ioWrite: 1_000_000 }

describe('a limit that this host cannot hold', () => {
  check('is a refusal for a profile that requires its controller, and nothing is left', async () => {
    for (const feature of ['cgroup2-cpu', 'cgroup2-io'] as const) {
      branch = makeBranch({ profile: { resources, require: [feature] } })
      await expect(run(launcher, branch, ['true'])).rejects.toMatchObject({
        code: 'feature-missing',
        data: { feature },
      })
      expect(existsSync(directCgroups().locate(branch.record.id) ?? '')).toBe(false)
      branch.remove()
    }
  })

  check('is said to any other', async () => {
    branch = makeBranch({ profile: { resources } })
    const agent = await launcher.start({
      ...{ record: branch.record, profile: branch.record.profile.resolved, mounts: branch.mounts },
      ...{ argv: ['true'], cwd: branch.base, environment: {}, stdio: { kind: 'pipes' } },
    })
    for (const what of ['processors', 'share of the processors', 'disk rates'])
      expect(agent.grants).toContainEqual(expect.objectContaining({ what, full: false }))
    agent.output?.resume()
    agent.errors?.resume()
    expect(await agent.exited).toMatchObject({ code: 0 })
  })
})
