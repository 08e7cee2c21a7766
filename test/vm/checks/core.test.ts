import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Launcher } from '../../../daemon/sandbox/launch.ts'
import { makeBranch, run, type TestBranch } from '../../root/branch.fixture.ts'

const PATTERN = '/proc/sys/kernel/core_pattern'
const HANDLER = '/run/core-handler'
const MARK = '/run/core-handled'

/** The pattern is one for the whole machine: only a machine of our own may have it changed. */
describe('a program of the host that handles cores', () => {
  const before = readFileSync(PATTERN, 'utf8')
  let branch: TestBranch | undefined
  beforeAll(() => {
    writeFileSync(HANDLER, `#!/bin/sh\ncat > /dev/null\nid -u > ${MARK}\n`, { mode: 0o755 })
    writeFileSync(PATTERN, `|${HANDLER} %P`)
  })
  afterEach(() => {
    rmSync(MARK, { force: true })
    branch?.remove()
  })
  afterAll(() => {
    writeFileSync(PATTERN, before)
    rmSync(HANDLER)
  })

  it('control: is run as root for anybody’s crash, also with a core limit of 0', async () => {
    spawnSync('setpriv', [
      ...['--reuid=1000', '--regid=1000', '--clear-groups'],
      ...['sh', '-c', 'ulimit -c 0; kill -SEGV $$'],
    ])
    await expect.poll(() => existsSync(MARK), { timeout: 30_000 }).toBe(true)
    await expect.poll(() => readFileSync(MARK, 'utf8'), { timeout: 30_000 }).toBe('0\n')
  })

  it('is not run for a crash in a branch, whatever the agent asks for', async () => {
    branch = makeBranch()
    const launcher = new Launcher()
    for (const script of ['kill -SEGV $$', 'ulimit -c 0; kill -SEGV $$', 'ulimit -c 1; kill -ABRT $$']) {
      const { exit } = await run(launcher, branch, ['sh', '-c', script])
      expect(exit.signal).toMatch(/^SIG(SEGV|ABRT)$/)
    }
    await delay(3000)
    expect(existsSync(MARK)).toBe(false)
  })
})
