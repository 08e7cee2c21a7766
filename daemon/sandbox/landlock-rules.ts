// pure
import type { Grant } from '../contract/branch.ts'
import type { Profile } from '../contract/profile.ts'
import type { SpawnOp } from '../contract/spawn.ts'
import {
  FS_RIGHTS,
  NET_RIGHTS,
  NEWEST_ABI,
  netPortAttr,
  PATH_BENEATH_DESCRIPTOR_OFFSET,
  pathBeneathAttr,
  RESTRICT_FLAGS,
  RULE,
  rightsOf,
  rulesetAttr,
  SCOPES,
} from '../kernel/landlock-abi.ts'
import { PuzzledError } from '../lib/errors.ts'

/**
 * A place in the agent's new root and what may be done beneath it. The caller knows what it mounted there; rules are
 * made on descriptors that the child opens after `pivot_root`, because a rule on the host's path does not match an
 * overlay or a new proc.
 */
export interface LandlockPath {
  /** As the agent sees it; must exist in the new root. */
  readonly path: string
  readonly kind: 'directory' | 'file'
  /**
   * `list`: names only. `read`: names and contents. `execute`: also running. `device`: read, write and ioctl of what is
   * there, nothing created. `write`: everything except making devices.
   */
  readonly access: 'list' | 'read' | 'execute' | 'device' | 'write'
}

export interface LandlockInput {
  readonly profile: Pick<Profile, 'name' | 'exec' | 'network' | 'require' | 'seccomp'>
  /** What the running kernel has; 0 when there is no Landlock. */
  readonly abi: number
  readonly paths: readonly LandlockPath[]
}

export interface LandlockPlan {
  /** In order; empty when the kernel has no Landlock and the profile does not require it. */
  readonly ops: readonly SpawnOp[]
  readonly grants: readonly Grant[]
}

const LIST = ['READ_DIR']
const READ = [...LIST, 'READ_FILE']
const EXECUTE = [...READ, 'EXECUTE']
const DEVICE = [...READ, 'WRITE_FILE', 'TRUNCATE', 'IOCTL_DEV']
/** `IOCTL_DEV` is missing on purpose: there are no devices where the agent may create files. */
const WRITE = [
  ...EXECUTE,
  'WRITE_FILE',
  'TRUNCATE',
  'REMOVE_DIR',
  'REMOVE_FILE',
  'MAKE_DIR',
  'MAKE_REG',
  'MAKE_SOCK',
  'MAKE_FIFO',
  'MAKE_SYM',
  'REFER',
  'RESOLVE_UNIX',
]
const ACCESS: Record<LandlockPath['access'], readonly string[]> = {
  list: LIST,
  read: READ,
  execute: EXECUTE,
  device: DEVICE,
  write: WRITE,
}

/** Ports on which the branch's own proxy and resolver answer, besides those that the profile names. */
const SERVED_PORTS = [53, 80, 443, 3128]

/**
 * The Landlock part of the spawn plan: ruleset, rules on paths inside the new root, TCP ports, scopes, restriction.
 * Must come after `pivot_root`, the identity change and no_new_privs, and before seccomp.
 * Throws `feature-missing` when the profile requires Landlock and the kernel grants less than all of it.
 */
export function landlockOps(input: LandlockInput): LandlockPlan {
  const abi = Math.min(input.abi, NEWEST_ABI)
  const grants = grantsOf(input, abi)
  const short = grants.filter((grant) => !grant.full)
  if (short.length > 0 && input.profile.require.includes('landlock')) throw refusal(input, short)
  if (abi < 1) return { ops: [], grants }

  const ports = tcpPorts(input.profile)
  const handled = rightsOf(FS_RIGHTS, abi)
  const net = ports === 'any' ? 0n : rightsOf(NET_RIGHTS, abi)
  const attr = rulesetAttr(abi, handled, net, rightsOf(SCOPES, abi))
  const create: SpawnOp = {
    name: `create a Landlock ruleset (ABI ${abi})`,
    call: 'landlock_create_ruleset',
    args: [attr, attr.length, 0],
    expect: 'ok',
    store: 'landlock-ruleset',
  }
  const restrict: SpawnOp = {
    name: 'restrict to the Landlock ruleset',
    call: 'landlock_restrict_self',
    args: [{ slot: 'landlock-ruleset' }, Number(rightsOf(RESTRICT_FLAGS, abi))],
    expect: 'ok',
  }
  const connect = rightsOf(NET_RIGHTS, abi, ['CONNECT_TCP'])
  return {
    ops: [
      create,
      ...input.paths.flatMap((place, index) => pathOps(place, index, rightsFor(input.profile, place, abi))),
      ...(net === 0n || ports === 'any' ? [] : ports.map((port) => portOp(port, connect))),
      restrict,
    ],
    grants,
  }
}

/** When the profile lists what may be executed, nothing else is: writable places lose the right too. */
function rightsFor(profile: LandlockInput['profile'], place: LandlockPath, abi: number): bigint {
  const names = ACCESS[place.access].filter(
    (name) => !(name === 'EXECUTE' && profile.exec.allow !== 'any' && place.access === 'write'),
  )
  const table = place.kind === 'file' ? FS_RIGHTS.filter((entry) => entry.onFiles) : FS_RIGHTS
  return rightsOf(table, abi, names)
}

function pathOps(place: LandlockPath, index: number, allowed: bigint): SpawnOp[] {
  const slot = `landlock-path-${index}`
  return [
    {
      name: `open "${place.path}" for its Landlock rule`,
      call: 'openat',
      args: [AT_FDCWD, cstring(place.path), O_PATH | O_CLOEXEC | O_NOFOLLOW],
      expect: 'ok',
      store: slot,
    },
    {
      name: `allow ${place.access} beneath "${place.path}"`,
      call: 'landlock_add_rule',
      args: [{ slot: 'landlock-ruleset' }, RULE.PATH_BENEATH, pathBeneathAttr(allowed), 0],
      expect: 'ok',
      patch: [{ arg: 2, offset: PATH_BENEATH_DESCRIPTOR_OFFSET, slot }],
    },
  ]
}

const portOp = (port: number, allowed: bigint): SpawnOp => ({
  name: `allow TCP connections to port ${port}`,
  call: 'landlock_add_rule',
  args: [{ slot: 'landlock-ruleset' }, RULE.NET_PORT, netPortAttr(allowed, port), 0],
  expect: 'ok',
})

const AT_FDCWD = -100
const O_PATH = 0o10000000
const O_CLOEXEC = 0o2000000
const O_NOFOLLOW = 0o400000

const cstring = (path: string): Uint8Array => Buffer.from(`${path}\0`, 'utf8')

/**
 * TCP ports that Landlock holds the agent to. A port rule has no address, so it cannot tell a test server on the
 * agent's own loopback from the proxy: it is used where there is no network at all, and under `strict`.
 */
export function tcpPorts(profile: LandlockInput['profile']): readonly number[] | 'any' {
  if (profile.network.mode === 'none') return []
  if (profile.seccomp !== 'strict') return 'any'
  const named = [
    ...profile.network.ports,
    ...profile.network.expose.map((entry) => entry.port),
    ...profile.network.rules.flatMap((rule) => rule.ports),
  ]
  return [...new Set([...SERVED_PORTS, ...named])].sort((a, b) => a - b)
}

function grantsOf(input: LandlockInput, abi: number): Grant[] {
  const missing = (table: readonly { name: string; abi: number }[]): string[] =>
    table.filter((entry) => entry.abi > abi).map((entry) => entry.name)
  const row = (what: string, requested: string, without: readonly string[], least: number): Grant => ({
    what: `landlock ${what}`,
    requested,
    granted:
      abi < least ? 'nothing' : without.length === 0 ? `all (ABI ${abi})` : `all but ${without.join(', ')}`,
    full: without.length === 0,
  })
  const ports = tcpPorts(input.profile)
  // RESOLVE_UNIX is asked of no kernel that is older than it: private /run and /tmp stand in for it.
  const files = FS_RIGHTS.filter((entry) => entry.name !== 'RESOLVE_UNIX')
  const grants = [row('files', `rules on ${input.paths.length} places`, missing(files), 1)]
  if (ports !== 'any') {
    const asked = ports.length === 0 ? 'no TCP' : `TCP connections to ${ports.join(', ')} only`
    grants.push(row('tcp', asked, missing(NET_RIGHTS), 4))
  }
  grants.push(row('scopes', 'no signals or abstract sockets to the outside', missing(SCOPES), 6))
  return grants
}

function refusal(input: LandlockInput, short: readonly Grant[]): PuzzledError {
  const parts = short.map((grant) => `${grant.what}: ${grant.granted}`).join('; ')
  return new PuzzledError(
    'feature-missing',
    `Profile "${input.profile.name}" requires Landlock, and this kernel (ABI ${input.abi}) grants less: ${parts}`,
    {
      hint: 'Use Linux 6.12 or newer with landlock in lsm=, or move landlock from require to prefer',
      data: { feature: 'landlock', abi: input.abi, short },
    },
  )
}
