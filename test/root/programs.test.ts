import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest'
import { ProfileStore } from '../../daemon/policy/profiles.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { makeBranch, run, type TestBranch } from './branch.fixture.ts'
import { missingFor, PROGRAMS, type RealProgram, toolPath } from './programs.ts'

const folder = fileURLToPath(new URL('../../policies/profiles', import.meta.url))
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.replace('.yaml', ''))
const store = new ProfileStore({ directories: [folder] })
const launcher = new Launcher()
const branches: TestBranch[] = []
const reference = new Map<string, { output: string; code: number | null }>()
let caches = ''

beforeAll(async () => {
  if (root !== undefined) return
  caches = mkdtempSync(join(tmpdir(), 'caches-'))
  for (const owner of [0, 1000]) {
    const branch = makeBranch({ owner })
    await run(launcher, branch, ['true'])
    branch.remove()
  }
})

afterAll(() => {
  if (caches !== '') rmSync(caches, { recursive: true, force: true })
})

afterEach(() => {
  for (const branch of branches.splice(0)) branch.remove()
})

const owner = (real: RealProgram): number => (real.asRoot === true ? 0 : 1000)

const cacheOf = (real: RealProgram): string => join(caches, real.name.replaceAll(' ', '-'))

/** The same script without any branch, as the same user, in a directory of its own. */
function outside(real: RealProgram): { output: string; code: number | null } {
  const known = reference.get(real.name)
  if (known !== undefined) return known
  const room = mkdtempSync(join(tmpdir(), 'outside-'))
  execFileSync('chmod', ['a+rx', tmpdir(), room])
  const [work, home] = [join(room, 'work'), join(room, 'home')]
  for (const path of [work, home]) {
    mkdirSync(path)
    chownSync(path, owner(real), owner(real))
  }
  const ids = [`--reuid=${owner(real)}`, `--regid=${owner(real)}`, '--clear-groups']
  const ran = spawnSync('setpriv', [...ids, 'sh', '-euc', real.script], {
    cwd: work,
    encoding: 'utf8',
    env: { PATH: toolPath, HOME: real.asRoot === true ? homedir() : home, USER: 'agent' },
  })
  if (real.cache !== undefined) renameSync(join(work, real.cache), cacheOf(real))
  rmSync(room, { recursive: true, force: true })
  const result = { output: ran.stdout, code: ran.status }
  reference.set(real.name, result)
  return result
}

describe.skipIf(root !== undefined).each(names)('under the profile "%s"', (name) => {
  for (const real of PROGRAMS)
    needs(root, ...missingFor(real))(real.name, async () => {
      const expected = outside(real)
      // The control: outside it works, and says something.
      expect(expected.output).not.toBe('')
      const { profile } = await store.resolve(name, {
        home: real.asRoot === true ? homedir() : '/home/agent',
      })
      const branch = makeBranch({ owner: owner(real), profile })
      branches.push(branch)
      if (real.cache !== undefined) execFileSync('cp', ['-a', cacheOf(real), join(branch.base, real.cache)])
      const before = readdirSync(branch.base)
      const environment = { ...profile.environment.set, PATH: toolPath }
      const ran = await run(launcher, branch, ['sh', '-euc', real.script], { environment })
      const shown =
        real.mount === undefined ||
        !existsSync(join(homedir(), real.mount)) ||
        profile.mounts.some(
          (grant) => grant.path === join(homedir(), real.mount ?? '') && grant.mode === 'ro',
        )
      const wanted = shown ? expected : { output: '', code: 127 }
      expect({ output: ran.output, code: ran.exit.code }, ran.errors).toEqual(wanted)
      expect(readdirSync(branch.base)).toEqual(before)
    })
})
