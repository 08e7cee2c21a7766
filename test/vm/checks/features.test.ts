import { readdirSync } from 'node:fs'
import { expect } from 'vitest'
import { probeFeatures } from '../../../daemon/kernel/features.ts'
import { lsm, needs, root, systemd } from '../../tier/needs.ts'

const check = needs(root, systemd, lsm('bpf'))

/** What the machine of this tier was built to have; a probe that misses it here would miss it everywhere. */
const BUILT_IN = [
  'project-quota',
  'reflink',
  'cgroup2',
  'cgroup2-cpu',
  'cgroup2-memory',
  'cgroup2-io',
  'cgroup2-pids',
  'clone3-into-cgroup',
  'bpf-lsm',
  'journald',
  'dbus',
  'systemd-scope',
] as const

check('the probe finds what this machine was built with, and leaves nothing', async () => {
  const features = await probeFeatures({ stateDirectory: '/data/state' })
  const missed = BUILT_IN.filter((name) => features[name].state !== 'have').map(
    (name) => `${name}: ${features[name].detail}`,
  )
  expect(missed).toEqual([])
  expect(features.selinux.level).toBeGreaterThan(0)
  const left = [...readdirSync('/data'), ...readdirSync('/sys/fs/cgroup')].filter((name) =>
    name.includes('probe'),
  )
  expect(left).toEqual([])
})
