import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { processesOf } from '../../../daemon/kernel/cgroup.ts'
import { Launcher } from '../../../daemon/sandbox/launch.ts'
import type { RunningBranch } from '../../../daemon/sandbox/running-branch.ts'
import { makeBranch, requestOf, type TestBranch } from '../../root/branch.fixture.ts'
import type { Notes } from '../harness.ts'
import { quantile } from '../statistics.ts'

const quiet = { kind: 'inherit', fds: [0, 1, 2] } as const
/** As many are started at once as a person or a service would at most. */
const AT_ONCE = 8
const RESOLUTION = 5
const MEGA = 1e6

/** Of one process: shared pages are divided among those who share them. */
export const proportionalBytes = (pid: number): number =>
  1024 * Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0)

const memoryOf = (cgroup: string): number =>
  processesOf(cgroup).reduce((sum, pid) => sum + proportionalBytes(pid), 0)

/** Starts `count` agents, looks at what they and the event loop cost while all of them run, and kills them. */
export async function agentsSideBySide(count: number, notes: Notes): Promise<void> {
  const launcher = new Launcher()
  const branches: TestBranch[] = Array.from({ length: count }, () => makeBranch())
  const agents: RunningBranch[] = []
  const starts: number[] = []
  const lag = monitorEventLoopDelay({ resolution: RESOLUTION })
  const start = async (branch: TestBranch): Promise<void> => {
    const began = performance.now()
    agents.push(await launcher.start(requestOf(branch, ['sleep', '100000'], { stdio: quiet })))
    starts.push(performance.now() - began)
  }
  lag.enable()
  try {
    for (let first = 0; first < count; first += AT_ONCE)
      await Promise.all(branches.slice(first, first + AT_ONCE).map(start))
    lag.disable()
    const each = agents.reduce((sum, agent) => sum + memoryOf(agent.cgroup), 0) / count
    notes.fact(`${count} agents: memory of each, init included`, each / MEGA, 'MB')
    notes.fact(`${count} agents: start p50, ${Math.min(count, AT_ONCE)} at once`, quantile(starts, 0.5), 'ms')
    notes.fact(
      `${count} agents: start p99, ${Math.min(count, AT_ONCE)} at once`,
      quantile(starts, 0.99),
      'ms',
    )
    notes.fact(
      `${count} agents: event loop late p99`,
      Math.max(0, lag.percentile(99) / MEGA - RESOLUTION),
      'ms',
    )
  } finally {
    await Promise.all(agents.map((agent) => agent.kill('signal')))
    await Promise.all(agents.map((agent) => agent.exited))
    for (const branch of branches) branch.remove()
  }
}
