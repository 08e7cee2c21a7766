// pure
import type { HardLimits } from './resource-limits.ts'

/** What stands at a path of the host. `absent` is a fact, not an error. */
export type PathKind = 'directory' | 'file' | 'link' | 'other' | 'absent'

/**
 * What the planner must know about the host to build the agent's root. `facts.ts` gathers it; everything in it is
 * owned by root on a sane host, and each use is checked again by the kernel (openat2 without links).
 */
export interface HostFacts {
  /** Who logged in, as the kernel's audit system knows it; left out where nobody did: we are a service. */
  readonly loginUid?: number
  /** Our own readiness to be ended when memory is out, which a child has from us. */
  readonly oomScore: number
  /** Whole seconds that the host's clocks show: what a time namespace takes off. */
  readonly clocks: { readonly monotonic: number; readonly boottime: number }
  /** Kernel release as [major, minor]. */
  readonly kernel: readonly [number, number]
  /** /proc/sys/kernel/cap_last_cap. */
  readonly lastCapability: number
  /** Our own: nobody can be given more where we lack CAP_SYS_RESOURCE. */
  readonly hardLimits: HardLimits
  /** Top-level names that are links on this host (`/bin` to `usr/bin`): made again as links when a profile mounts them. */
  readonly links: Readonly<Record<string, string>>
  /** Secrets below /etc that exist. */
  readonly secrets: readonly { readonly path: string; readonly kind: 'directory' | 'file' }[]
  /** Where the host's processes, namespaces and settings are mounted, `/proc` and `/sys` among them. */
  readonly kernelMounts: readonly { readonly path: string; readonly kind: 'directory' | 'file' }[]
  /** Places of /proc that exist and are masked. */
  readonly procMasks: readonly { readonly path: string; readonly kind: 'directory' | 'file' }[]
  /** Places of /proc that exist and are made read-only. */
  readonly procReadOnly: readonly string[]
  /** For each path that a profile, a file override or a Landlock grant names: what is there, links resolved. */
  readonly paths: Readonly<Record<string, { readonly kind: PathKind; readonly real: string }>>
}

/** Readable by nobody but root on most hosts; masked all the same, because the requester may be in a group that may. */
export const SECRET_PATHS = [
  '/etc/shadow',
  '/etc/shadow-',
  '/etc/gshadow',
  '/etc/gshadow-',
  '/etc/sudoers',
  '/etc/sudoers.d',
  '/etc/security/opasswd',
  '/etc/ssl/private',
  '/etc/pki/tls/private',
  '/etc/krb5.keytab',
  '/etc/puzzled',
  '/etc/NetworkManager/system-connections',
  '/etc/wireguard',
  '/etc/ipsec.secrets',
  '/etc/ipsec.d',
  '/etc/ppp',
  '/etc/openvpn',
  '/etc/docker',
  '/etc/kubernetes',
  '/etc/rancher',
  '/etc/letsencrypt',
  '/etc/credstore',
  '/etc/credstore.encrypted',
  '/etc/polkit-1',
  '/etc/fstab',
  '/etc/crypttab',
] as const

/** SSH host keys have many names; every file of /etc/ssh that ends so is masked. */
export const SECRET_SSH_SUFFIX = '_key'

/**
 * Program interpreters of ELF files. Where a profile lists what may be executed, these belong to every entry: the kernel
 * executes them with each dynamic program.
 */
export const LOADERS = [
  '/lib64/ld-linux-x86-64.so.2',
  '/lib/ld-linux-aarch64.so.1',
  '/lib/ld-linux.so.2',
  '/lib/ld-musl-x86_64.so.1',
  '/lib/ld-musl-aarch64.so.1',
] as const

/**
 * Of a new proc: what tells about or reaches the host's kernel rather than the agent's own processes. What programs ask
 * about the machine that they run on (processors, memory, load, up time) stays; what is root's alone is closed already.
 */
export const PROC_MASKS = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/buddyinfo',
  '/proc/bus',
  '/proc/cmdline',
  '/proc/config.gz',
  '/proc/diskstats',
  '/proc/driver',
  '/proc/fs',
  '/proc/interrupts',
  '/proc/irq',
  '/proc/kallsyms',
  '/proc/kcore',
  '/proc/key-users',
  '/proc/keys',
  '/proc/kmsg',
  '/proc/kpagecount',
  '/proc/kpageflags',
  '/proc/latency_stats',
  '/proc/locks',
  '/proc/mdstat',
  '/proc/modules',
  '/proc/partitions',
  '/proc/pressure',
  '/proc/sched_debug',
  '/proc/schedstat',
  '/proc/scsi',
  '/proc/softirqs',
  '/proc/sysrq-trigger',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/vmallocinfo',
  '/proc/zoneinfo',
] as const

export const PROC_READ_ONLY = ['/proc/sys'] as const
