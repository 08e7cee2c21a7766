import { readFileSync } from 'node:fs'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { cgroupHierarchy } from '../../daemon/kernel/cgroup.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { patience } from '../tier/patience.ts'
import { takeStock } from '../tier/residue.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'

const check = needs(root)
/** Of four starts each. */
const ROUNDS = Number(process.env.PUZZLED_SCALE_ROUNDS ?? 250)
const launcher = new Launcher()
const branches: TestBranch[] = []

beforeAll(async () => await warmUp(launcher))
afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

const quiet = { kind: 'inherit', fds: [0, 1, 2] } as const

describe('many branches', () => {
  check('64 at once start, run and are killed', { timeout: patience * 120_000 }, async () => {
    for (let count = 0; count < 64; count++) branches.push(makeBranch())
    const agents = await Promise.all(
      branches.map((branch) => launcher.start(requestOf(branch, ['sleep', '1000'], { stdio: quiet }))),
    )
    expect(new Set(agents.map((agent) => agent.pid)).size).toBe(64)
    for (const agent of agents) expect(agent.readings().pids).toBe(2)
    const killed = await Promise.all(agents.map((agent) => agent.kill('signal')))
    expect(killed).toEqual(agents.map(() => ({ terminated: 2, survivors: 0 })))
    await Promise.all(agents.map((agent) => agent.exited))
  })

  check(
    `${4 * ROUNDS} starts and kills leave every count where it was`,
    { timeout: patience * 300_000 },
    async () => {
      const branch = makeBranch()
      branches.push(branch)
      for (let index = 0; index < 4; index++) layersFor(branch, index)
      const stock = takeStock()
      const groups = liveCgroups()
      for (let round = 0; round < ROUNDS; round++) {
        const agents = await Promise.all(
          [0, 1, 2, 3].map((index) =>
            launcher.start({
              ...requestOf(branch, ['sleep', '1000'], { stdio: quiet }),
              record: { ...branch.record, id: `${branch.record.id}r${index}` },
              mounts: layersFor(branch, index),
            }),
          ),
        )
        // Killed by the launcher's own sweep, as after a crash, in every other round.
        if (round % 2 === 0) await Promise.all(agents.map((agent) => agent.kill('signal')))
        else await Promise.all(agents.map((_, index) => launcher.sweep(`${branch.record.id}r${index}`)))
        await Promise.all(agents.map((agent) => agent.exited))
      }
      // systemd removes a scope a moment after its last process.
      await expect.poll(takeStock).toEqual(stock)
      await expect.poll(liveCgroups).toBeLessThanOrEqual(groups)
    },
  )
})

/** Each of the four has a layer of its own: two overlays must not write into one. */
const layersFor = (branch: TestBranch, index: number) => {
  const made = spare[index] ?? makeBranch()
  spare[index] = made
  if (!branches.includes(made)) branches.push(made)
  return branch.mounts.map((layers) => ({
    ...layers,
    upper: made.upper,
    work: made.mounts[0]?.work ?? '',
  }))
}
const spare: TestBranch[] = []

/** Live descendants of the hierarchy, from its own count. */
function liveCgroups(): number {
  const text = readFileSync(`${cgroupHierarchy()}/cgroup.stat`, 'utf8')
  return Number(/nr_descendants (\d+)/.exec(text)?.[1])
}
