import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, requestOf, run, type TestBranch, warmUp } from './branch.fixture.ts'

const check = needs(root)
const launcher = new Launcher()
const branches: TestBranch[] = []

function branchOf(options: Parameters<typeof makeBranch>[0] = {}): TestBranch {
  const branch = makeBranch(options)
  branches.push(branch)
  return branch
}

beforeAll(async () => await warmUp(launcher))
afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

/** Every case also runs under the residue guard: a start that fails must leave nothing. */
describe('a start that cannot be', () => {
  const fails = async (branch: TestBranch, argv: readonly string[], change = {}): Promise<unknown> =>
    await launcher.start(requestOf(branch, argv, change)).then(
      () => expect.unreachable('the agent was started'),
      (error: unknown) => error,
    )

  check('a command that does not exist is 127', async () => {
    for (const command of ['no-such-command', './nowhere', '/usr/bin/no-such'])
      expect(await fails(branchOf(), [command])).toMatchObject({
        code: 'command-not-found',
        message: `Cannot run "${command}": not found in the branch`,
      })
  })

  check('a command that cannot be executed is 126', async () => {
    const branch = branchOf()
    writeFileSync(join(branch.base, 'script'), '#!/bin/sh\n', { mode: 0o644 })
    expect(await fails(branch, ['./script'])).toMatchObject({ code: 'command-not-executable' })
    expect(await fails(branch, ['/usr'])).toMatchObject({ code: 'command-not-executable' })
  })

  check('an interpreter that does not exist is 127', async () => {
    const branch = branchOf()
    writeFileSync(join(branch.base, 'script'), '#!/no/such/interpreter\n', { mode: 0o755 })
    expect(await fails(branch, ['./script'])).toMatchObject({ code: 'command-not-found' })
  })

  check('a directory outside the bases', async () => {
    const branch = branchOf()
    for (const cwd of ['/usr', '/', `${branch.base}x`, 'relative'])
      expect(await fails(branch, ['true'], { cwd })).toMatchObject({
        code: 'usage',
        message: `The working directory "${cwd}" is not in a base of the branch`,
      })
  })

  check('a directory that does not exist, or that the agent may not enter', async () => {
    const branch = branchOf()
    mkdirSync(join(branch.base, 'locked'), { mode: 0o700 })
    for (const [name, errno] of [
      ['nowhere', 'ENOENT'],
      ['locked', 'EACCES'],
    ])
      expect(await fails(branch, ['true'], { cwd: join(branch.base, `${name}`) })).toMatchObject({
        code: 'start-failed',
        message: expect.stringMatching(
          new RegExp(`^Cannot start agent: step \\d+ of \\d+, change to ".*/${name}": ${errno}$`),
        ),
      })
  })

  check('a base that the requester cannot reach', async () => {
    const branch = branchOf({ owner: 1000, requester: 1001 })
    expect((await run(launcher, branch, ['true'])).exit.code).toBe(0)
    chmodSync(join(branch.base, '..'), 0o700)
    expect(await fails(branch, ['true'])).toMatchObject({
      code: 'access-denied',
      message: expect.stringContaining(`open the base "${branch.base}": EACCES`),
    })
  })

  check('a base that a link took the place of', async () => {
    const branch = branchOf()
    renameSync(branch.base, `${branch.base}-moved`)
    symlinkSync('/etc', branch.base)
    expect(await fails(branch, ['true'])).toMatchObject({
      code: 'base-invalid',
      message: expect.stringContaining('ELOOP'),
    })
  })

  check('arguments that are too long', async () => {
    const branch = branchOf()
    expect(await fails(branch, ['true', 'x'.repeat(200_000)])).toMatchObject({ code: 'too-large' })
    const many = Array.from({ length: 40_000 }, () => 'x'.repeat(100))
    expect(await fails(branch, ['true', ...many])).toMatchObject({ code: 'too-large' })
  })

  check('NULs, empty commands and odd names', async () => {
    const branch = branchOf()
    for (const [argv, change] of [
      [[], {}],
      [[''], {}],
      [['a\0b'], {}],
      [['true'], { environment: { A: 'x\0y' } }],
      [['true'], { environment: { 'A=B': 'x' } }],
      [['true'], { environment: { 'A\0': 'x' } }],
    ] as const)
      expect(await fails(branch, argv, change)).toMatchObject({ code: 'usage' })
  })

  check('a profile that mounts what does not exist', async () => {
    const missing = { path: '/srv/no-such', mode: 'ro', why: 'a test' } as const
    const refused = branchOf({ profile: { mounts: [{ ...missing, optional: false }] } })
    expect(await fails(refused, ['true'])).toMatchObject({
      code: 'profile-invalid',
      message: 'Profile "test" mounts "/srv/no-such", which does not exist',
    })
    const skipped = branchOf({ profile: { mounts: [{ ...missing, optional: true }] } })
    expect((await run(launcher, skipped, ['true'])).exit.code).toBe(0)
  })
})

describe('a limit that is too low', () => {
  const ends = async (rlimits: Record<string, number>, script: string): Promise<unknown> => {
    const outcome = run(launcher, branchOf({ profile: { rlimits } }), ['sh', '-c', script])
    return await outcome.then(
      ({ exit, output }) => ({ code: exit.code, signal: exit.signal, output }),
      (error: unknown) => error,
    )
  }

  check('for the start is an error that names it, and not one of the command', async () => {
    expect(await ends({ nofile: 3 }, 'true')).toMatchObject({
      code: 'start-failed',
      hint: expect.stringContaining('rlimits.nofile'),
    })
    expect(await ends({ nproc: 1 }, 'true')).toMatchObject({
      code: 'start-failed',
      // Of init or of the command, as other processes of this user have used it up or not.
      message: expect.stringMatching(/EAGAIN/),
      hint: expect.stringContaining('rlimits.nproc'),
    })
    expect(await ends({ nofile: 256, nproc: 10_000 }, 'echo runs')).toMatchObject({ output: 'runs\n' })
  })

  check('for the program is what the program says, or the signal of that limit', async () => {
    expect(await ends({ fsize: 10 }, 'echo 0123456789012345 > f')).toMatchObject({ signal: 'SIGXFSZ' })
    expect(await ends({ fsize: 100 }, 'echo 0123456789012345 > f')).toMatchObject({ code: 0 })
  })
})
