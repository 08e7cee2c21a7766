import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { processesOf } from '../../../daemon/kernel/cgroup.ts'
import { Launcher } from '../../../daemon/sandbox/launch.ts'
import type { RunningBranch } from '../../../daemon/sandbox/running-branch.ts'
import { makeBranch, requestOf, type TestBranch } from '../../root/branch.fixture.ts'
import type { BenchArea } from '../harness.ts'

const quiet = { kind: 'inherit', fds: [0, 1, 2] } as const
const AT_ONCE = 16

/** PSS of everything in a cgroup: shared pages are divided among those who share them. */
const proportionalBytes = (cgroup: string): number =>
  processesOf(cgroup)
    .map((pid) => Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0))
    .reduce((sum, kib) => sum + kib * 1024, 0)

const mebibytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(2)} MiB`

/** Starts `count` agents, looks at what they and this process cost while all of them run, and kills them. */
async function holdMany(launcher: Launcher, count: number): Promise<void> {
  const branches: TestBranch[] = Array.from({ length: count }, () => makeBranch())
  const agents: RunningBranch[] = []
  const lag = monitorEventLoopDelay({ resolution: 10 })
  lag.enable()
  try {
    for (let first = 0; first < count; first += AT_ONCE)
      agents.push(
        ...(await Promise.all(
          branches
            .slice(first, first + AT_ONCE)
            .map((branch) => launcher.start(requestOf(branch, ['sleep', '100000'], { stdio: quiet }))),
        )),
      )
    lag.disable()
    const each = agents.reduce((sum, agent) => sum + proportionalBytes(agent.cgroup), 0) / count
    console.log(
      `scale: ${count} agents run; ${mebibytes(each)} each (PSS), this process ${mebibytes(process.memoryUsage.rss())}, ` +
        `event loop p50 ${(lag.percentile(50) / 1e6 - 10).toFixed(1)} ms, p99 ${(lag.percentile(99) / 1e6 - 10).toFixed(1)} ms late`,
    )
  } finally {
    await Promise.all(agents.map((agent) => agent.kill('signal')))
    await Promise.all(agents.map((agent) => agent.exited))
    for (const branch of branches) branch.remove()
  }
}

export const area: BenchArea = {
  name: 'scale',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: () => {
    const launcher = new Launcher()
    return [
      {
        name: 'branches side by side: started, held, killed',
        baseline: '64',
        rounds: 1,
        warmUp: 0,
        candidates: { '64': () => holdMany(launcher, 64), '500': () => holdMany(launcher, 500) },
      },
    ]
  },
}
