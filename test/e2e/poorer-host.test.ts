import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect } from 'vitest'
import type { DoctorReport } from '../../daemon/contract/doctor.ts'
import { FEATURE_NAMES } from '../../daemon/contract/features.ts'
import { needs, root } from '../tier/needs.ts'
import { inProject } from './grounds.ts'

const program = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const FOLDERS = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib']
const LIBRARIES = [
  { file: 'libseccomp.so.2', debian: 'libseccomp2', feature: 'seccomp', required: true },
  { file: 'libnftables.so.1', debian: 'libnftables1', feature: 'nftables', required: true },
  { file: 'libbpf.so.1', debian: 'libbpf1', feature: 'bpf-lsm', required: false },
  { file: 'libsystemd.so.0', debian: 'libsystemd0', feature: 'journald', required: false },
]
/** What the profile "standard" asks for. */
const REQUIRED = ['overlay', 'seccomp', 'netns', 'pidfd'] as const

const placeOf = (file: string): string | undefined =>
  FOLDERS.map((folder) => join(folder, file)).find((path) => existsSync(path))

const { here, branches } = inProject()

/** `features` as PUZZLED_TEST_FEATURES. */
function puzzlectl(features: string, ...args: string[]): { status: number | null; said: string } {
  const [verb = '', ...rest] = args
  const run = spawnSync(process.execPath, [program, verb, '--state-dir', here.state, ...rest], {
    cwd: here.project,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: '/root', PUZZLED_TEST_FEATURES: features },
  })
  return { status: run.status, said: run.stdout + run.stderr }
}

const nothingIsLeft = async (): Promise<void> => {
  expect(await branches()).toEqual([])
  expect(readdirSync(join(here.state, 'branches'))).toEqual([])
}

describe('without a feature that the profile requires', () => {
  for (const name of REQUIRED)
    needs(root)(`${name}, a run is refused with what would help, and nothing is made`, async () => {
      const { status, said } = puzzlectl(`${name}:0`, 'run', '--', 'true')
      expect([status, said]).toEqual([69, expect.stringContaining(`Profile "standard" requires ${name}: `)])
      expect(said).toContain('hint: ')
      await nothingIsLeft()
    })

  needs(root)('control: without all the others it goes on, as on a host that has them', () => {
    const others = FEATURE_NAMES.filter((name) => !REQUIRED.some((one) => one === name))
    const features = others.map((name) => `${name}:0`).join(',')
    expect(puzzlectl(features, 'run', '--', 'sh', '-c', 'echo ran')).toMatchObject({
      status: 0,
      said: expect.stringContaining('ran'),
    })
  })
})

describe('without the library', () => {
  let hidden: string | undefined
  afterEach(() => {
    if (hidden !== undefined) execFileSync('umount', [hidden])
    hidden = undefined
  })

  for (const { file, debian, feature, required } of LIBRARIES) {
    const path = placeOf(file)
    const check = needs(root, path === undefined ? `needs ${file}, to hide it` : undefined)
    check(`${file}, doctor names the package, and a run ${required ? 'does too' : 'goes on'}`, async () => {
      // The file's own room has mounts of its own: nobody else misses the library.
      hidden = realpathSync(path ?? '')
      execFileSync('mount', ['--bind', '/dev/null', hidden])
      const report = JSON.parse(puzzlectl('', 'doctor', '--json').said) as DoctorReport
      const row = report.features.find(({ name }) => name === feature)
      expect(row?.state).toBe('missing')
      // Without a journal nobody asks for its library.
      if (row?.detail.includes(file) || required) expect(row?.remedy).toContain(`apt-get install ${debian}`)
      const { status, said } = puzzlectl('', 'run', '--', 'true')
      if (!required) return expect([status, said]).toEqual([0, expect.stringContaining('no changes')])
      expect([status, said]).toEqual([69, expect.stringContaining(`Cannot load ${file}`)])
      expect(said).toContain(`hint: apt-get install ${debian}`)
      return nothingIsLeft()
    })
  }
})
