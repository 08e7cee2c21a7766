import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, run, type TestBranch } from './branch.fixture.ts'

const check = needs(root)
const launcher = new Launcher()
const branches: TestBranch[] = []

function branchOf(options: Parameters<typeof makeBranch>[0] = {}): TestBranch {
  const branch = makeBranch(options)
  branches.push(branch)
  return branch
}

// What a launcher makes once and keeps: init's memory file, the map of owners.
beforeAll(async () => {
  if (root !== undefined) return
  for (const owner of [0, 1000]) {
    const branch = makeBranch({ owner })
    await run(launcher, branch, ['true'])
    branch.remove()
  }
})

afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

describe('an agent', () => {
  check('runs over the base and writes into the layer', async () => {
    const branch = branchOf()
    writeFileSync(join(branch.base, 'file'), 'old\n')
    chownSync(join(branch.base, 'file'), 1000, 1000)
    const ran = await run(launcher, branch, ['sh', '-c', 'cat file; echo new >file; id -u; pwd; exit 7'])
    expect(ran).toMatchObject({ output: `old\n1000\n${branch.base}\n`, errors: '' })
    expect(ran.exit).toMatchObject({ code: 7, signal: null, cause: 'exited' })
    expect(readFileSync(join(branch.base, 'file'), 'utf8')).toBe('old\n')
    expect(readFileSync(join(branch.upper, 'file'), 'utf8')).toBe('new\n')
  })

  check('of root over a base of root is nobody in particular, and its files are root’s on disk', async () => {
    const branch = branchOf({ owner: 0 })
    const ran = await run(launcher, branch, [
      'sh',
      '-c',
      'id -u; id -un; stat -c %u .; echo x >made; stat -c %u made',
    ])
    expect(ran.errors).toBe('')
    const [uid, name, base, made] = ran.output.split('\n')
    expect(Number(uid)).toBeGreaterThan(0)
    expect([name, base, made]).toEqual(['agent', uid, uid])
    expect(statSync(join(branch.upper, 'made')).uid).toBe(0)
    expect(existsSync(join(branch.base, 'made'))).toBe(false)
  })
})
