import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeAll, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, type TestBranch, warmUp } from './branch.fixture.ts'
import { makePlace, missingFor, type Place } from './filesystems.ts'

const check = needs(root, missingFor('ext4'))
const launcher = new Launcher()

let branch: TestBranch | undefined
let place: Place | undefined
let writer: ChildProcess | undefined

beforeAll(async () => await warmUp(launcher))
afterEach(() => {
  writer?.kill('SIGKILL')
  place?.remove()
  branch?.remove()
})

const fsfreeze = (how: '--freeze' | '--unfreeze', path: string): void =>
  void execFileSync('/usr/sbin/fsfreeze', [how, path])

const stateOf = (pid: number): string =>
  /^State:\t(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''

check('a process that waits inside the kernel is told as one that does not stand still yet', async () => {
  branch = makeBranch()
  place = makePlace('ext4')
  const agent = await launcher.start(requestOf(branch, ['sleep', '1000']))
  fsfreeze('--freeze', place.path)
  try {
    writer = spawn('dd', ['if=/dev/zero', `of=${join(place.path, 'f')}`, 'count=1'], { stdio: 'ignore' })
    const pid = writer.pid ?? -1
    while (stateOf(pid) !== 'D') await setTimeout(20)
    // Beside the agent: of processes that are not in a leaf the kernel does not ask whether they stand still.
    writeFileSync(join(agent.cgroup, 'agent', 'cgroup.procs'), String(pid))
    expect(await agent.freeze()).toBe(false)
  } finally {
    fsfreeze('--unfreeze', place.path)
  }
  expect(await agent.freeze()).toBe(true)
  await agent.kill('signal')
})
