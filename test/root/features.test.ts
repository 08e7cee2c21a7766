import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { FEATURE_NAMES } from '../../daemon/contract/features.ts'
import { spawn } from '../../daemon/kernel/clone.ts'
import { probeFeatures } from '../../daemon/kernel/features.ts'
import { landlockAbi } from '../../daemon/kernel/landlock.ts'
import { probeNetns } from '../../daemon/kernel/probes/isolation.ts'
import { MS_PRIVATE, MS_REC, PR_SET_NO_NEW_PRIVS } from '../../daemon/kernel/uapi/index.ts'
import { needs, root } from '../tier/needs.ts'
import { endOf, execute, op } from './spawning.ts'

const check = needs(root)
const text = (value: string) => Buffer.from(`${value}\0`)

check('every feature is tried and has a row; nothing is left where the store will be', async () => {
  const state = join(tmpdir(), 'parent')
  mkdirSync(state)
  const features = await probeFeatures({ stateDirectory: join(state, 'not', 'yet') })
  expect(Object.keys(features)).toEqual([...FEATURE_NAMES])
  expect(readdirSync(state)).toEqual([])
  rmSync(state, { recursive: true })
  for (const row of Object.values(features)) {
    expect(row.detail).not.toBe('not probed')
    expect(row.detail).not.toBe('')
    expect(row.state === 'have').toBe(row.lost === '' && row.remedy === '' && row.level > 0)
  }
  // This tier needs these; a probe that cannot see them is wrong.
  for (const name of ['seccomp', 'overlay', 'netns', 'pidfd'] as const)
    expect(features[name].state).not.toBe('missing')
  expect(features.landlock.level).toBe(landlockAbi())
})

check('a host is tested as a poorer one, and a wrong wish is refused', async () => {
  const options = { stateDirectory: tmpdir(), overrides: 'overlay:0,landlock:0' }
  const features = await probeFeatures(options)
  expect([features.overlay.state, features.landlock.state]).toEqual(['missing', 'missing'])
  expect(features.overlay.remedy).toContain('PUZZLED_TEST_FEATURES')
  await expect(probeFeatures({ ...options, overrides: 'overlays:0' })).rejects.toThrow(/unknown entry/)
})

check('a probe sees what is forbidden: the same calls without privileges fail', async () => {
  expect((await probeNetns()).level).toBe(1)
  const failing = await spawn({
    namespaces: [],
    ops: [
      op('prctl', [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0]),
      op('setresuid', [65534, 65534, 65534]),
      { ...op('mount', [null, text('/'), null, MS_REC | MS_PRIVATE, null]), expect: { errno: 'EPERM' } },
      { ...op('unshare', [0x40000000]), expect: { errno: 'EPERM' } },
      execute('/bin/true'),
    ],
  })
  if (!failing.ok) throw new Error(`${failing.op.name}: ${failing.errnoName}`)
  expect(endOf(failing.pidfd).exitCode).toBe(0)
})
