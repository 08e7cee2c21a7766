import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { type Planner, spawnPlan } from '../../daemon/sandbox/spawn-plan.ts'
import { run } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, parseReport } from './attack.ts'
import { branchFor } from './harness.ts'

const check = needs(root, program('gcc'))
const FILTERS = ['system calls', 'arguments', 'told refusals'] as const
type Filter = (typeof FILTERS)[number]

/** A start with these filters only. The tries go: they are there to refuse it. */
const only =
  (kept: readonly Filter[]): Planner =>
  (input) => {
    const plan = spawnPlan(input)
    const sections = plan.sections
      .filter(({ name }) => name !== 'tries')
      .map((section) =>
        section.name === 'seccomp'
          ? {
              ...section,
              ops: section.ops.filter(
                ({ name, call }) => call === 'seccomp' && kept.some((filter) => name.includes(`: ${filter}`)),
              ),
            }
          : section,
      )
    return { ...plan, sections }
  }

/** What the doors answer, and how many filters the kernel says that there are. */
async function answers(kept: readonly Filter[]): Promise<Record<string, string>> {
  const branch = branchFor()
  copyFileSync(attack('doors'), join(branch.base, 'doors'))
  const launcher = new Launcher({ planner: only(kept) })
  const { output } = await run(launcher, branch, [
    ...['sh', '-c', './doors; sed -n "s/^Seccomp_filters:\\t/filters /p" /proc/self/status'],
  ])
  return parseReport(output)
}

/** One answer that each filter gives and no other does. */
const OWN: Readonly<Record<Filter, readonly [door: string, answer: string]>> = {
  'system calls': ['clone3-user', 'ENOSYS'],
  arguments: ['mptcp', 'EPROTONOSUPPORT'],
  'told refusals': ['ptrace-self', 'EPERM'],
}

describe('S11 each of the three filters', () => {
  check('alone gives the answers that are its own, and without it they are others', async () => {
    const none = await answers([])
    expect(none).toMatchObject({ filters: '0', 'ptrace-self': 'OK', tcp: 'OK' })
    for (const filter of FILTERS) {
      const [door, answer] = OWN[filter]
      const alone = await answers([filter])
      expect([filter, alone.filters, alone[door], none[door] === answer]).toEqual([
        filter,
        '1',
        answer,
        false,
      ])
    }
    expect(await answers(FILTERS)).toMatchObject({ filters: '3', ...Object.fromEntries(Object.values(OWN)) })
  })
})
