import { spawnSync } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { SpawnOp, SpawnRequest } from '../../../daemon/contract/spawn.ts'
import { spawn } from '../../../daemon/kernel/clone.ts'
import { probeFeatures } from '../../../daemon/kernel/features.ts'
import { waitPidfd } from '../../../daemon/kernel/pidfd.ts'
import type { BenchArea } from '../harness.ts'

const SIX: SpawnRequest['namespaces'] = ['NEWNS', 'NEWPID', 'NEWNET', 'NEWUTS', 'NEWIPC', 'NEWCGROUP']
const UNSHARE = ['/usr/bin/unshare', '-mpnuiC', '--fork', '/bin/true'] as const

const text = (value: string): Buffer => Buffer.from(`${value}\0`)

const execute = (argv: readonly string[]): SpawnOp => ({
  name: argv.join(' '),
  call: 'execve',
  args: [text(argv[0] ?? ''), { vector: argv.map(text) }, { vector: [] }],
  expect: 'ok',
})

/** From the call until the child is reaped. */
async function toTheEnd(namespaces: SpawnRequest['namespaces'], argv: readonly string[]): Promise<void> {
  const result = await spawn({ namespaces, ops: [execute(argv)] })
  if (!result.ok) throw new Error(`${result.op.name}: ${result.errnoName}`)
  const end = waitPidfd(result.pidfd, { block: true })
  closeSync(result.pidfd)
  if (end?.exitCode !== 0) throw new Error(`${argv.join(' ')} ended with ${end?.exitCode ?? end?.signal}`)
}

function mustSucceed(command: string, args: readonly string[]): void {
  const run = spawnSync(command, args, { stdio: 'ignore' })
  if (run.status !== 0) throw new Error(`${command} ${args.join(' ')}: ${run.error?.message ?? run.status}`)
}

export const area: BenchArea = {
  name: 'start',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: () => [
    {
      name: 'start /bin/true in six new namespaces, until it is reaped',
      // Started by the trampoline too, so that the program itself is compared and not how Node starts it.
      baseline: 'unshare -mpnuiC --fork /bin/true',
      goal: '≤ 1.0, p50 ≤ 3 ms',
      rounds: 200,
      warmUp: 20,
      candidates: {
        'puzzled trampoline': () => toTheEnd(SIX, ['/bin/true']),
        'unshare -mpnuiC --fork /bin/true': () => toTheEnd([], UNSHARE),
        'unshare … by child_process.spawnSync': () => mustSucceed(UNSHARE[0], UNSHARE.slice(1)),
        'puzzled trampoline, no namespaces': () => toTheEnd([], ['/bin/true']),
      },
    },
    {
      name: 'try every feature (what the doctor does)',
      baseline: 'node -e 0',
      goal: 'p50 ≤ 150 ms',
      rounds: 20,
      candidates: {
        'node -e 0': () => mustSucceed(process.execPath, ['-e', '0']),
        'puzzled: probeFeatures': async () =>
          void (await probeFeatures({ stateDirectory: '/var/lib/puzzled' })),
      },
    },
  ],
}
