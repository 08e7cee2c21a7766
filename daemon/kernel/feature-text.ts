// pure

import type { FeatureName, FeatureRow } from '../contract/features.ts'
import { BUNDLE_REMEDY } from '../contract/trust.ts'

/** What a probe found out by using a primitive. */
export interface Finding {
  /** 0 is missing. */
  readonly level: number
  readonly detail: string
  /** Set when it works with a restriction: what is lost then. */
  readonly restriction?: string
  /** Better than the general remedy, because the probe knows what is wrong. */
  readonly remedy?: string
}

interface FeatureText {
  /** What is lost without it. */
  readonly lost: string
  readonly remedy: string
}

export const FEATURE_TEXT: Readonly<Record<FeatureName, FeatureText>> = {
  landlock: {
    lost: 'Files are fenced by the mount namespace alone; there is no second fence and no port rules.',
    remedy: 'Add landlock to the boot parameter lsm= (Linux 5.13 or newer).',
  },
  seccomp: {
    lost: 'No agent can be started: system calls cannot be filtered.',
    remedy: 'Boot a kernel with CONFIG_SECCOMP_FILTER=y.',
  },
  'seccomp-notify': {
    lost: 'No agent with a budget of executed programs can be started.',
    remedy: 'Boot Linux 5.5 or newer.',
  },
  overlay: {
    lost: 'No branch can be made.',
    remedy: 'modprobe overlay',
  },
  'overlay-userxattr': {
    ...unused('branches need root, with it and without it'),
  },
  'project-quota': {
    lost: 'Disk budgets are enforced by measuring, not by write() itself.',
    remedy: 'Put the state directory on XFS mounted with -o prjquota.',
  },
  reflink: {
    lost: 'A commit copies every byte of a changed file; it takes longer and needs the space twice.',
    remedy: 'Put the state directory and the bases on one XFS (reflink=1) or Btrfs filesystem.',
  },
  cgroup2: {
    lost: 'A branch cannot be frozen, and its processes cannot be killed all at once.',
    remedy:
      'Boot with systemd.unified_cgroup_hierarchy=1, or run: mount -t cgroup2 none /sys/fs/cgroup/unified',
  },
  'cgroup2-cpu': controller(
    'cpu',
    'CPU budgets are measured all the same; limits and shares of the processors hold nobody.',
  ),
  'cgroup2-memory': controller(
    'memory',
    'Memory budgets are looked at four times a second: an agent that is faster can exhaust the machine.',
  ),
  'cgroup2-io': controller('io', 'Rates and shares of the disks hold nobody.'),
  'cgroup2-pids': controller(
    'pids',
    'Process budgets are looked at four times a second: an agent that forks faster meets the limits of the host first.',
  ),
  'bpf-lsm': {
    ...unused('executed programs are counted through seccomp notifications, with it and without it'),
  },
  nftables: {
    lost: 'Ports other than those of the proxy are unreachable instead of redirected, and nothing counts them.',
    remedy: 'modprobe nf_tables',
  },
  netns: {
    lost: 'No agent can be started with a network of its own.',
    remedy: 'Boot a kernel with CONFIG_NET_NS=y.',
  },
  'ca-bundle': {
    lost: 'Profiles whose rules reach hosts by TLS are refused: nothing in a branch could trust the gate.',
    remedy: BUNDLE_REMEDY,
  },
  fanotify: {
    ...unused('changes of a base are found when a commit is prepared, with it and without it'),
  },
  journald: {
    lost: 'Audit records are not sent to the journal; the log in the state directory is complete without it.',
    remedy: 'systemctl start systemd-journald.socket',
  },
  dbus: {
    lost: 'The daemon cannot be reached; puzzlectl works with the embedded engine.',
    remedy: 'apt-get install dbus && systemctl start dbus',
  },
  'systemd-scope': {
    lost: 'Agents are not units of systemd; puzzled makes their cgroups itself.',
    remedy: 'Boot with systemd as PID 1.',
  },
  selinux: {
    lost: 'No mandatory policy confines the daemon itself.',
    remedy: 'Add selinux to the boot parameter lsm=, then: make -C selinux install',
  },
  ima: {
    lost: 'Executed programs are not measured.',
    remedy: 'Boot with ima_policy=tcb.',
  },
  'user-namespaces': {
    lost: 'Directories of root cannot be branched for root: no owners can be mapped for an agent that is not root.',
    remedy: 'sysctl -w user.max_user_namespaces=10000',
  },
  pidfd: {
    lost: 'No agent can be started: processes cannot be named without races.',
    remedy: 'Boot Linux 5.6 or newer.',
  },
  'clone3-into-cgroup': {
    lost: 'An agent cannot be born in its cgroup.',
    remedy: 'Boot Linux 5.7 or newer, with cgroup v2 mounted.',
  },
  'kernel-audit': {
    lost: 'What seccomp, Landlock and security modules refuse is an errno for the agent and is not told as a denial.',
    remedy:
      'Run as root with CAP_AUDIT_READ in the first namespaces of the host, on a kernel with CONFIG_AUDIT=y.',
  },
}

/** Tried, because a profile may require it; nothing is to be mended for puzzled. */
function unused(instead: string): FeatureText {
  return { lost: `Nothing: ${instead}.`, remedy: '' }
}

function controller(name: string, lost: string): FeatureText {
  const remedy = `Boot with systemd.unified_cgroup_hierarchy=1 (cgroup v1 must not hold the ${name} controller).`
  return { lost, remedy }
}

/** The row that people and programs see. */
export function featureRow(name: FeatureName, finding: Finding): FeatureRow {
  const text = FEATURE_TEXT[name]
  const { level, detail, restriction } = finding
  if (level > 0 && restriction === undefined)
    return { name, state: 'have', level, detail, lost: '', remedy: '' }
  return {
    name,
    state: level > 0 ? 'partly' : 'missing',
    level,
    detail,
    lost: restriction ?? text.lost,
    remedy: finding.remedy ?? text.remedy,
  }
}

/** What Landlock of this ABI cannot do; undefined when nothing that puzzled asks for is missing. */
export function landlockRestriction(abi: number): string | undefined {
  const missing: string[] = []
  if (abi < 2) missing.push('moving files between directories is denied altogether')
  if (abi < 3) missing.push('truncate is not restricted')
  if (abi < 4) missing.push('TCP ports are not restricted')
  if (abi < 5) missing.push('ioctls on devices are not restricted')
  if (abi < 6) missing.push('signals and abstract sockets are fenced by namespaces alone')
  return missing.length === 0 ? undefined : `ABI ${abi}: ${missing.join('; ')}.`
}
