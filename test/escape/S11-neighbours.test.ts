import { spawn } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { requestOf, type TestBranch } from '../root/branch.fixture.ts'
import { effectOf } from '../root/effect.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, outside, parseReport } from './attack.ts'
import { branchFor, launcher } from './harness.ts'

const check = needs(root, program('gcc'))

/** What one command of a branch gets when it turns against the agent (process 2 in there) and its init. */
const ANSWERS = {
  trace: 'EPERM',
  'read-memory': 'EPERM',
  'open-memory': 'EACCES',
  'open-environment': 'EACCES',
  'open-descriptor': 'EACCES',
  'take-descriptor': 'EPERM',
  signal: 'EPERM',
  'signal-by-descriptor': 'EPERM',
  'init-memory': 'EACCES',
  'init-descriptors': 'EACCES',
  'init-signal': 'EPERM',
  'spared-by-oom': 'EACCES',
  'join-group': 'EPERM',
  priority: 'EACCES',
  'time-namespace': 'EPERM',
}

async function joining(branch: TestBranch, argv: readonly string[]): Promise<Record<string, string>> {
  const agent = await launcher.start(requestOf(branch, ['sleep', '1000']))
  for (const stream of [agent.output, agent.errors]) stream?.resume()
  try {
    const command = { argv, cwd: branch.base, environment: {}, stdio: { kind: 'pipes' as const } }
    const { stdout } = await effectOf(await agent.exec(command))
    return parseReport(Buffer.from(stdout.bytes).toString())
  } finally {
    await agent.kill('signal')
    await agent.exited
  }
}

describe('S11 commands of one branch against each other', () => {
  check('control: outside, root does all of it to an ordinary process', async () => {
    const bystander = spawn('sleep', ['1000'], { stdio: 'ignore' })
    const gone = new Promise((resolve) => bystander.once('close', resolve))
    const pid = String(bystander.pid)
    try {
      const report = parseReport(outside([attack('neighbour'), pid, pid]))
      expect(Object.keys(report)).toEqual(Object.keys(ANSWERS))
      // Without CAP_SYS_RESOURCE not even root is spared; a time namespace may be missing from the kernel.
      const { 'spared-by-oom': _spared, 'time-namespace': _time, ...others } = report
      expect([...new Set(Object.values(others))]).toEqual(['OK'])
    } finally {
      bystander.kill()
      await gone
    }
  })

  check('a command that joins reaches neither the agent nor init', async () => {
    const branch = branchFor()
    copyFileSync(attack('neighbour'), join(branch.base, 'neighbour'))
    expect(await joining(branch, ['./neighbour', '2', '1'])).toEqual(ANSWERS)
  })

  check('a command that joins has its three streams and nothing else', async () => {
    const branch = branchFor()
    copyFileSync(attack('descriptors'), join(branch.base, 'descriptors'))
    expect(await joining(branch, ['./descriptors'])).toEqual({
      ...{ 'fd-0': 'stream', 'fd-1': 'stream', 'fd-2': 'stream' },
      ...{ cwd: branch.base, 'raw-cwd': 'reachable' },
    })
  })
})
