import { execFileSync } from 'node:child_process'
import { afterEach, expect, it } from 'vitest'
import { Launcher } from '../../../daemon/sandbox/launch.ts'
import { makeBranch, requestOf, run, type TestBranch } from '../../root/branch.fixture.ts'

const systemctl = (...args: string[]): string => execFileSync('systemctl', args, { encoding: 'utf8' })
const branches: TestBranch[] = []

function branchOf(options: Parameters<typeof makeBranch>[0]): TestBranch {
  const branch = makeBranch(options)
  branches.push(branch)
  return branch
}

afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

const limits = (memory: number, pids: number) => ({
  profile: { budgets: { limits: { memory, pids }, atLimit: 'kill' as const } },
})

it('an agent lives in a transient scope of puzzle.slice, which goes with it', async () => {
  const branch = branchOf({})
  const agent = await new Launcher().start(requestOf(branch, ['sleep', '100']))
  const unit = `puzzle-${branch.record.id}.scope`
  expect(systemctl('show', unit, '-p', 'ActiveState,Slice,Delegate')).toContain('Slice=puzzle.slice')
  expect(systemctl('is-active', unit).trim()).toBe('active')
  expect(await agent.kill('signal')).toMatchObject({ survivors: 0 })
  await agent.exited
  for (let tries = 0; tries < 100 && systemctl('list-units', '--no-legend', unit) !== ''; tries++)
    await new Promise((resolve) => setTimeout(resolve, 100))
  expect(systemctl('list-units', '--no-legend', unit)).toBe('')
})

it('the kernel holds the limits, and the exit says which killed it', async () => {
  const branch = branchOf(limits(48 * 1024 * 1024, 20))
  const launcher = new Launcher()
  const forks = await run(launcher, branch, [
    'sh',
    '-c',
    'for i in $(seq 40); do sleep 1 & done; wait; echo all',
  ])
  expect(forks.errors).toContain('fork')
  const eat = 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); echo survived'
  const eaten = await run(launcher, branchOf(limits(48 * 1024 * 1024, 100)), ['sh', '-c', eat])
  expect(eaten.output).not.toContain('survived')
  expect(eaten.exit.cause).toBe('oom')
})
