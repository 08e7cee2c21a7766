import { createHash } from 'node:crypto'
import { copyFileSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, expect } from 'vitest'
import type { Profile } from '../../daemon/contract/profile.ts'
import { Launcher, type LaunchRequest } from '../../daemon/sandbox/launch.ts'
import { makeBranch, type Ran, run, type TestBranch } from '../root/branch.fixture.ts'
import { root } from '../tier/needs.ts'
import { attack, parseReport } from './attack.ts'

export const launcher = new Launcher()
const branches: TestBranch[] = []

// What a launcher makes once and keeps (init's memory file, the map of owners) must not look like residue of the first test.
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

export interface BranchOptions {
  readonly owner?: number
  readonly profile?: Partial<Profile>
  /** Prepares the base before the agent starts. */
  readonly prepare?: (branch: TestBranch) => void
  readonly change?: Partial<LaunchRequest>
  /** Runs in this branch instead of a new one. */
  readonly reuse?: TestBranch
}

/** A branch that is removed after the test. */
export function branchFor(options: BranchOptions = {}): TestBranch {
  const branch = makeBranch(options)
  branches.push(branch)
  options.prepare?.(branch)
  return branch
}

/** Runs attacks/NAME.c in a branch (from the base, where it is a file like others) and checks that the host is as it was. */
export async function inBranch(
  name: string,
  args: readonly string[] = [],
  options: BranchOptions = {},
): Promise<Ran & { report: Record<string, string>; branch: TestBranch }> {
  const branch = options.reuse ?? branchFor(options)
  copyFileSync(attack(name), join(branch.base, name))
  const ran = await commandIn(branch, [`./${name}`, ...args], options.change)
  return { ...ran, report: parseReport(ran.output), branch }
}

/** Runs any command in a branch; the host must be unchanged by it. */
export async function commandIn(
  branch: TestBranch,
  argv: readonly string[],
  change: Partial<LaunchRequest> = {},
): Promise<Ran> {
  const before = hostState(branch)
  const ran = await run(launcher, branch, argv, change)
  expect(hostState(branch), 'The host changed').toEqual(before)
  return ran
}

const WATCHED = [
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/modprobe',
  '/proc/sys/kernel/hostname',
  '/proc/sys/kernel/domainname',
  '/proc/sys/vm/overcommit_memory',
  '/proc/self/mountinfo',
  '/proc/net/unix',
  '/etc/passwd',
  '/etc/hosts',
]

/** What no attack may change: names, kernel settings, mounts, and every byte and mode of the base. */
function hostState(branch: TestBranch): Record<string, string> {
  const state: Record<string, string> = { hostname: hostname() }
  for (const path of WATCHED) state[path] = readableText(path)
  for (const path of walk(branch.base)) {
    const stat = lstatSync(path)
    const content = stat.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : ''
    state[path] = [stat.mode, stat.uid, stat.gid, stat.size, stat.mtimeMs, content].join(' ')
  }
  // Sockets of this process come and go; those with names are the ones that matter.
  state['/proc/net/unix'] = (state['/proc/net/unix'] ?? '')
    .split('\n')
    .filter((line) => /[@/]/.test(line))
    .join('\n')
  return state
}

function readableText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return String(error)
  }
}

function* walk(path: string): Generator<string> {
  yield path
  if (!lstatSync(path).isDirectory()) return
  for (const name of readdirSync(path)) yield* walk(join(path, name))
}
