import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect } from 'vitest'
import { requestOf, run } from '../root/branch.fixture.ts'
import { roundsOf } from '../threats/counts.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, parseReport } from './attack.ts'
import { branchFor, commandIn, inBranch, launcher } from './harness.ts'

const check = needs(root, program('gcc'))
const { rounds: CYCLES, timeout } = roundsOf('PUZZLED_ESCAPE_CYCLES')

/** Two readings of a file that is being written to differ; whoever writes may have to wait for a busy machine. */
async function changes(path: string, looks = 10_000): Promise<boolean> {
  const first = readFileSync(path)
  for (let look = 0; look < looks; look++) {
    await sleep(2)
    if (!first.equals(readFileSync(path))) return true
  }
  return false
}

// With the end of the cgroup switched off, by hand (a signal to init and nothing more): the files go on changing.
describe('S14 writers that go on', () => {
  check(
    'a descriptor, a mapping and a detached grandchild are silent after the kill, all of them',
    async () => {
      const branch = branchFor()
      copyFileSync(attack('writer'), join(branch.base, 'writer'))
      const agent = await launcher.start(requestOf(branch, ['./writer', 'one', 'two']))
      const files = ['one', 'two'].map((name) => join(branch.upper, name))
      while (!files.every((file) => statSync(file, { throwIfNoEntry: false })?.size === 4096)) await sleep(5)
      // The control: they do write, and TERM does not stop them.
      for (const file of files) expect(await changes(file)).toBe(true)
      await agent.freeze()
      for (const file of files) expect(await changes(file, 50)).toBe(false)
      await agent.thaw()
      for (const file of files) expect(await changes(file)).toBe(true)
      expect(await agent.kill('signal')).toMatchObject({ survivors: 0 })
      for (const file of files) expect(await changes(file, 50)).toBe(false)
      await agent.exited
    },
  )
})

describe('S21 process numbers that come again', () => {
  check('a storm of forks is ended as a whole, and nobody else is', async () => {
    const bystander = spawn('setpriv', ['--reuid=1000', '--regid=1000', '--clear-groups', 'sleep', '1000'])
    const gone = new Promise((resolve) => bystander.once('close', resolve))
    const storm =
      'i=0; while [ $i -lt 20 ]; do (while :; do (true) & wait; done) & i=$((i+1)); done; echo ready; wait'
    for (let round = 0; round < 5; round++) {
      const branch = branchFor()
      const agent = await launcher.start(requestOf(branch, ['sh', '-c', storm]))
      await new Promise((resolve) => agent.output?.once('data', resolve))
      const result = await agent.kill('signal')
      expect(result.survivors).toBe(0)
      expect(result.terminated).toBeGreaterThan(20)
      // Signals to what has ended reach nobody: the process is known by descriptor, not by number.
      await agent.exited
      expect(await agent.signal('TERM')).toEqual({ terminated: 0, survivors: 0 })
    }
    expect([bystander.exitCode, bystander.signalCode]).toEqual([null, null])
    bystander.kill()
    await gone
  })
})

describe('S48 what one branch got is not what another one gets', () => {
  check('branches that run at the same time under different profiles answer differently', async () => {
    const profiles = ['strict', 'build', 'standard', 'strict', 'standard', 'build'] as const
    const answers = await Promise.all(
      profiles.map(async (seccomp) => {
        const branch = branchFor({ profile: { seccomp } })
        copyFileSync(attack('doors'), join(branch.base, 'doors'))
        const report = parseReport((await run(launcher, branch, ['./doors'])).output)
        return [report['chmod-setuid'], report['personality-randomize']]
      }),
    )
    const expected = { strict: ['EPERM', 'ENOSYS'], standard: ['OK', 'ENOSYS'], build: ['OK', 'OK'] }
    expect(answers).toEqual(profiles.map((seccomp) => expected[seccomp]))
  })

  check('a grant that is taken away is gone for the next start', async () => {
    const branch = branchFor()
    const path = '/usr/share/doc'
    const hidden = { mounts: [{ path, mode: 'hidden' as const, optional: false, why: 'revoked' }] }
    const { report: before } = await inBranch('probe', ['list', path], { reuse: branch })
    const profile = { ...branch.record.profile.resolved, ...hidden }
    const after = parseReport((await commandIn(branch, ['./probe', 'list', path], { profile })).output)
    expect([before[path], after[path]]).toEqual(['OK', 'ENOENT'])
  })
})

describe('S49 what is left', () => {
  const stock = () => ({
    mounts: readFileSync('/proc/self/mountinfo', 'utf8'),
    namespaces: execFileSync('lsns', ['--noheadings', '--output', 'TYPE,NS', '--task', String(process.pid)], {
      encoding: 'utf8',
    }),
    descriptors: readdirSync('/proc/self/fd').length,
    cgroups: cgroups(),
  })

  check(`${CYCLES} branches that are killed in every moment leave nothing`, { timeout }, async () => {
    const branch = branchFor()
    const before = stock()
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const agent = await launcher.start(requestOf(branch, ['sh', '-c', 'sleep 1000 & exec sleep 1000']))
      if (cycle % 3 === 1) await sleep(cycle % 7)
      if (cycle % 3 === 2) await agent.freeze()
      expect(await agent.kill('signal')).toMatchObject({ survivors: 0 })
      await agent.exited
    }
    await launcher.sweep(branch.record.id)
    let after = stock()
    // Cgroups go when the kernel has let go of their processes, which takes its time on a busy machine.
    for (let look = 0; look < 400 && !isDeepStrictEqual(after, before); look++) {
      await sleep(25)
      after = stock()
    }
    expect(after).toEqual(before)
  })
})

/** Below where cgroup v2 is mounted in this room. */
function cgroups(): string[] {
  const line = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((entry) => entry.includes(' - cgroup2 '))
    .at(-1)
  const point = line?.split(' ')[4] ?? ''
  return (
    execFileSync('find', [point, '-mindepth', '1', '-type', 'd'], { encoding: 'utf8' })
      .split('\n')
      // The slice of all branches comes and goes with the first and the last of them.
      .filter((path) => !path.endsWith('/puzzle.slice'))
      .sort()
  )
}
