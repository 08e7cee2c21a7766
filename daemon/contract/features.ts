// pure

/** The primitives that puzzled composes; a profile's `require`/`prefer` name these. */
export const FEATURE_NAMES = [
  'landlock',
  'seccomp',
  'seccomp-notify',
  'overlay',
  'overlay-userxattr',
  'project-quota',
  'reflink',
  'cgroup2',
  'cgroup2-cpu',
  'cgroup2-memory',
  'cgroup2-io',
  'cgroup2-pids',
  'bpf-lsm',
  'nftables',
  'netns',
  'ca-bundle',
  'fanotify',
  'journald',
  'dbus',
  'systemd-scope',
  'selinux',
  'ima',
  'user-namespaces',
  'pidfd',
  'clone3-into-cgroup',
  'kernel-audit',
] as const

export type FeatureName = (typeof FEATURE_NAMES)[number]
export type FeatureState = 'have' | 'partly' | 'missing'

export interface FeatureRow {
  name: FeatureName
  state: FeatureState
  /** A number where the primitive has one (Landlock ABI), else 1 or 0. */
  level: number
  /** What was tried and what came back. */
  detail: string
  /** What is lost without it; empty when `have`. */
  lost: string
  /** The one command or setting that mends it; empty when there is nothing to do. */
  remedy: string
}

export type Features = Readonly<Record<FeatureName, FeatureRow>>
