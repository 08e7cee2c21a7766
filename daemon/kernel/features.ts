import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { FEATURE_NAMES, type FeatureName, type FeatureRow, type Features } from '../contract/features.ts'
import { PuzzledError } from '../lib/errors.ts'
import { applyOverride, parseOverrides } from './feature-override.ts'
import { type Finding, featureRow } from './feature-text.ts'
import { KernelError } from './ffi.ts'
import { probeKernelAudit } from './probes/audit.ts'
import { probeCgroups } from './probes/cgroups.ts'
import {
  probeLandlock,
  probeNetns,
  probeNftables,
  probePidfd,
  probeSeccomp,
  probeSeccompNotify,
  probeUserNamespaces,
} from './probes/isolation.ts'
import {
  probeBpfLsm,
  probeBundle,
  probeDbus,
  probeIma,
  probeJournald,
  probeSelinux,
  probeSystemdScope,
} from './probes/services.ts'
import {
  probeFanotify,
  probeOverlay,
  probeProjectQuota,
  probeReflink,
  probeUserxattr,
} from './probes/storage.ts'

type Probe = (folder: string) => Finding | Promise<Finding>
type CgroupFeature = Extract<FeatureName, `cgroup2${string}` | 'clone3-into-cgroup'>

/** Probes that stand alone; those of cgroups share one cgroup. A feature without a probe does not compile. */
const PROBES: Readonly<Record<Exclude<FeatureName, CgroupFeature>, Probe>> = {
  landlock: probeLandlock,
  seccomp: probeSeccomp,
  'seccomp-notify': probeSeccompNotify,
  overlay: probeOverlay,
  'overlay-userxattr': probeUserxattr,
  'project-quota': probeProjectQuota,
  reflink: probeReflink,
  'bpf-lsm': probeBpfLsm,
  nftables: probeNftables,
  netns: probeNetns,
  'ca-bundle': probeBundle,
  fanotify: probeFanotify,
  journald: probeJournald,
  dbus: probeDbus,
  'systemd-scope': probeSystemdScope,
  selinux: probeSelinux,
  ima: probeIma,
  'user-namespaces': probeUserNamespaces,
  pidfd: probePidfd,
  'kernel-audit': probeKernelAudit,
}

export interface ProbeOptions {
  /** Quota, reflink and overlay depend on the filesystem of the store. It need not exist yet. */
  readonly stateDirectory: string
  /** The value of PUZZLED_TEST_FEATURES. */
  readonly overrides?: string | undefined
  /** Probes only these; the others are said to be not probed. */
  readonly only?: readonly FeatureName[]
}

/** Tries every primitive that puzzled composes. Nothing of it is left afterwards: no mount, cgroup, file or process. */
export async function probeFeatures(options: ProbeOptions): Promise<Features> {
  const overrides = parseOverrides(options.overrides)
  const folder = probeFolder(options.stateDirectory)
  try {
    const findings: Partial<Record<FeatureName, Finding>> = {}
    const wanted = (name: string): boolean => options.only?.some((one) => one === name) ?? true
    const cgroups = async (): Promise<void> => {
      const found = await attempt(probeCgroups)
      Object.assign(findings, 'level' in found ? {} : found)
    }
    await Promise.all([
      ...(FEATURE_NAMES.some((name) => wanted(name) && !(name in PROBES)) ? [cgroups()] : []),
      ...Object.entries(PROBES)
        .filter(([name]) => wanted(name))
        .map(async ([name, probe]) => {
          findings[name as FeatureName] = await attempt(() => probe(folder))
        }),
    ])
    const row = (name: FeatureName): FeatureRow =>
      featureRow(name, applyOverride(name, findings[name] ?? { level: 0, detail: 'not probed' }, overrides))
    return Object.fromEntries(FEATURE_NAMES.map((name) => [name, row(name)])) as Features
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A directory on the filesystem of the store; where that may not be written, one for temporary files. */
function probeFolder(stateDirectory: string): string {
  let place = resolve(stateDirectory)
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place)
  try {
    return mkdtempSync(join(place, '.puzzled-probe-'))
  } catch {
    return mkdtempSync(join(tmpdir(), 'puzzled-probe-'))
  }
}

/** A probe that throws has found the feature missing; its error is the detail, and its hint the remedy. */
async function attempt<Result>(probe: () => Result | Promise<Result>): Promise<Result | Finding> {
  try {
    return await probe()
  } catch (error) {
    if (error instanceof PuzzledError)
      return { level: 0, detail: error.message, ...(error.hint === undefined ? {} : { remedy: error.hint }) }
    const detail = error instanceof Error ? error.message : String(error)
    const denied =
      error instanceof KernelError && (error.errnoName === 'EPERM' || error.errnoName === 'EACCES')
    const remedy = denied && process.geteuid?.() !== 0 ? { remedy: 'Run as root.' } : {}
    return { level: 0, detail, ...remedy }
  }
}
