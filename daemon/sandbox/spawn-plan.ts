// pure
import type { Grant, Requester, RestartPolicy } from '../contract/branch.ts'
import type { Profile } from '../contract/profile.ts'
import { initFlags, type SpawnArg, type SpawnOp, type SpawnRequest } from '../contract/spawn.ts'
import { sendDescriptorOp } from '../kernel/descriptor-message.ts'
import {
  AF_INET,
  AT_EMPTY_PATH,
  AT_FDCWD,
  CLONE_NEWCGROUP,
  CLONE_NEWIPC,
  CLONE_NEWNET,
  CLONE_NEWNS,
  CLONE_NEWPID,
  CLONE_NEWUTS,
  CLOSE_RANGE_CLOEXEC,
  F_DUPFD_CLOEXEC,
  F_SETFD,
  IFF_UP,
  O_CLOEXEC,
  O_WRONLY,
  SIOCSIFFLAGS,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
} from '../kernel/uapi/index.ts'
import { call, cstring, slot, storing } from './calls.ts'
import { capsBeforeIdentityOps, capsOps } from './caps-plan.ts'
import { clockOps } from './clock-plan.ts'
import { type Identity, identityOps, withRequesterRights } from './identity.ts'
import { landlockPlaces } from './landlock-places.ts'
import { landlockOps } from './landlock-rules.ts'
import type { Place } from './places.ts'
import { resourceLimitOps, withinHardLimits } from './resource-limits.ts'
import type { HostFacts } from './root-facts.ts'
import { rootOps, sourceOps } from './root-plan.ts'
import { LISTENER_SLOT, type SeccompFilter, seccompOps } from './seccomp-plan.ts'
import { lockedByCapabilities, lockedBySeccomp } from './tries.ts'

/** Descriptors of the daemon that the child finds under the same numbers. `explain` gives names instead. */
export interface LockDescriptors {
  /** The sealed copy of `native/init.c`. */
  readonly init: SpawnArg
  /** Write end of the status pipe. */
  readonly status: number
  readonly stdio: readonly [SpawnArg, SpawnArg, SpawnArg]
}

export interface PlanDescriptors extends LockDescriptors {
  /** Detached devpts mount. */
  readonly terminals: SpawnArg
  /** Detached, read-only mount of the list of denials; null where there is none. */
  readonly denials: SpawnArg
  /** User namespace whose map shifts owners; null when nothing is shifted. */
  readonly ownerMap: SpawnArg
  /** Network namespace to join; null for a new one with nothing but loopback. */
  readonly network: SpawnArg
}

/** What holds a process, whether it begins a world or joins one. */
export interface LockInput {
  readonly profile: Profile
  readonly identity: Identity
  readonly places: readonly Place[]
  readonly facts: HostFacts
  readonly cwd: string
  readonly argv: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Descriptor 0 is the process's own terminal. */
  readonly terminal: boolean
  /** Whether init starts it again when it has ended. */
  readonly restart?: RestartPolicy | null
  readonly landlockAbi: number
  readonly seccomp: readonly SeccompFilter[]
  /** Asks the daemon before each program is executed; the child sends its listener over the socket. */
  readonly execNotify?: { readonly filter: SeccompFilter; readonly socket: SpawnArg } | null
  readonly descriptors: LockDescriptors
}

export interface PlanInput extends LockInput {
  readonly requester: Pick<Requester, 'uid' | 'gid' | 'groups'>
  readonly hostname: string
  readonly descriptors: PlanDescriptors
}

export interface JoinInput extends LockInput {
  readonly requester: Pick<Requester, 'uid'>
  /** Pidfd of the agent's init. */
  readonly agent: SpawnArg
}

/** The chapters of a start. `docs/spawn.md` has one heading for each, in this order. */
export const SECTIONS = [
  'namespaces',
  'sources',
  'root',
  'host',
  'session',
  'limits',
  'identity',
  'capabilities',
  'directory',
  'landlock',
  'descriptors',
  'tries',
  'seccomp',
  'exec',
] as const
/** `join` stands for the first four where a command joins a branch that runs already. */
export type SectionName = (typeof SECTIONS)[number] | 'join'

export interface SpawnPlan {
  readonly sections: readonly { readonly name: SectionName; readonly ops: readonly SpawnOp[] }[]
  readonly namespaces: SpawnRequest['namespaces']
  readonly grants: readonly Grant[]
}

/** The flat list that the trampoline runs. */
export const opsOf = (plan: SpawnPlan): SpawnOp[] => plan.sections.flatMap((section) => section.ops)

/**
 * The whole start of an agent, from clone to exec, as data. The order must hold: propagation is private before anything
 * is mounted; sources are opened before the host's root is gone; ids change after the last mount and before
 * capabilities go; no_new_privs comes before Landlock and seccomp; Landlock's rules are made on descriptors opened in
 * the new root; doors are tried after they were locked; seccomp is last, since it judges every call after it.
 */
export function spawnPlan(input: PlanInput): SpawnPlan {
  const { sections, grants } = lockedSections(input)
  return {
    sections: [
      {
        name: 'namespaces',
        ops: [...forgetOps(input), ...inheritedOps(input), ...namespaceOps(input)],
      },
      { name: 'sources', ops: withRequesterRights(input.requester, sourceOps(input.places)) },
      {
        name: 'root',
        ops: rootOps({
          places: input.places,
          kernel: input.facts.kernel,
          agent: input.identity,
          ownerMap: input.descriptors.ownerMap,
          terminals: input.descriptors.terminals,
          denials: input.descriptors.denials,
        }),
      },
      { name: 'host', ops: hostOps(input) },
      ...sections,
    ],
    namespaces: namespacesOf(input.descriptors.network),
    grants,
  }
}

/** A second command in a branch that runs: it joins the agent's world and is locked in exactly as the agent is. */
export function joinPlan(input: JoinInput): SpawnPlan {
  const { sections, grants } = lockedSections(input)
  const join = call('join the namespaces of the agent', 'setns', input.agent, JOINED)
  const joining = [...forgetOps(input), ...inheritedOps(input), ...clockOps(input.profile, input.facts), join]
  return { sections: [{ name: 'join', ops: joining }, ...sections], namespaces: [], grants }
}

/** All at once, by a pidfd that was taken at clone: never on the word of a pid. */
const JOINED = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP

/** From the session to exec: what holds the agent, once it is in its own world. */
function lockedSections(input: LockInput): Pick<SpawnPlan, 'sections' | 'grants'> {
  const landlock = landlockOps({
    profile: input.profile,
    abi: input.landlockAbi,
    paths: landlockPlaces(input.places, input.profile, input.facts),
  })
  const limits = withinHardLimits(input.profile.rlimits, input.facts.hardLimits)
  const seccomp =
    input.seccomp.length === 0
      ? []
      : [
          ...execNotifyOps(input),
          ...seccompOps(input.seccomp.filter(({ logged }) => logged !== true)),
          ...lockedBySeccomp(),
          // After the tries: they are ours, and not to be heard of.
          ...seccompOps(input.seccomp.filter(({ logged }) => logged === true)),
        ]
  return {
    sections: [
      { name: 'session', ops: sessionOps(input) },
      { name: 'limits', ops: resourceLimitOps(limits.rlimits) },
      { name: 'identity', ops: [...capsBeforeIdentityOps(), ...identityOps(input.identity)] },
      { name: 'capabilities', ops: capsOps(input.facts.lastCapability) },
      { name: 'directory', ops: directoryOps(input) },
      { name: 'landlock', ops: landlock.ops },
      { name: 'descriptors', ops: descriptorOps(input) },
      { name: 'tries', ops: lockedByCapabilities(input.identity.uid) },
      { name: 'seccomp', ops: seccomp },
      { name: 'exec', ops: [execOp(input)] },
    ],
    grants: [...landlock.grants, ...limits.grants],
  }
}

/**
 * The child begins with a copy of the daemon's descriptors. All that the plan does not name are closed first: a daemon
 * with a thousand of them must not use up the agent's limit, and the plan must not be able to touch them by mistake.
 */
function forgetOps(input: LockInput & { readonly agent?: SpawnArg }): SpawnOp[] {
  const { stdio, ...others } = input.descriptors
  const named = [...stdio, ...Object.values(others), input.agent ?? null, input.execNotify?.socket ?? null]
  const kept = named.filter((arg): arg is number => typeof arg === 'number' && arg > 2).sort((a, b) => a - b)
  const ranges = [2, ...kept].map(
    (before, index) => [before + 1, (kept[index] ?? LAST_DESCRIPTOR + 1) - 1] as const,
  )
  return ranges
    .filter(([first, last]) => first <= last)
    .map(([first, last]) =>
      call(
        last === LAST_DESCRIPTOR
          ? `close descriptors from ${first}`
          : `close descriptors ${first} to ${last}`,
        'close_range',
        first,
        last,
        0,
      ),
    )
}

const LAST_DESCRIPTOR = 0xffffffff

/**
 * Whose doing it is, for the kernel's audit system, and a session number of its own: every record that the kernel makes
 * about any process of the agent carries both, and the agent cannot change them. A kernel without audit, or one on which
 * nobody may do this any more, has no such records or ones without a number: nothing depends on it.
 */
const auditSessionOps = ({ facts, requester }: PlanInput | JoinInput): SpawnOp[] =>
  // Whoever logged in stays responsible, also for what sudo did.
  procOps('loginuid', facts.loginUid ?? requester.uid, 'begin a session of the audit system')

/** All that a child would have from the daemon, and that an agent must not. */
const inheritedOps = (input: PlanInput | JoinInput): SpawnOp[] => [
  ...auditSessionOps(input),
  ...oomOps(input.facts),
]

/**
 * When the host runs out of memory an agent goes before the daemon and before what people run, however well the daemon
 * itself is protected.
 */
const oomOps = ({ oomScore }: HostFacts): SpawnOp[] =>
  procOps('oom_score_adj', Math.min(Math.max(oomScore, 0) + 200, 1000), 'be ended first when memory is out')

/** Writes a file of the child's own in /proc. Not every kernel has each, or lets it be written: nothing depends on it. */
function procOps(name: string, value: number, what: string): SpawnOp[] {
  const text = Buffer.from(String(value))
  const tried = (op: SpawnOp): SpawnOp => ({ ...op, expect: 'any' })
  const path = cstring(`/proc/self/${name}`)
  return [
    tried(storing(call(`open ${name}`, 'openat', AT_FDCWD, path, O_WRONLY | O_CLOEXEC), name)),
    tried(call(what, 'write', slot(name), text, text.length)),
    tried(call(`close ${name}`, 'close', slot(name))),
  ]
}

const joinsNetwork = (input: PlanInput): boolean => input.descriptors.network !== null

/** What clone3 makes for an agent; known before anything else is, so that it can be made beside the planning. */
export function namespacesOf(
  network: SpawnArg,
  without: SpawnRequest['namespaces'] = [],
): SpawnRequest['namespaces'] {
  const all = [
    'NEWNS',
    'NEWPID',
    'NEWIPC',
    'NEWUTS',
    ...(network === null ? ['NEWNET' as const] : []),
  ] as const
  return all.filter((name) => !without.includes(name))
}

/** Plans a start. `spawnPlan`, unless somebody leaves something out to see that it is missed. */
export interface Planner {
  (input: PlanInput): SpawnPlan
  readonly leavesOut?: SpawnRequest['namespaces']
}

/**
 * clone3 makes most namespaces. The cgroup namespace is made here, because clone3 would root it in the daemon's cgroup;
 * the time namespace, because clone3 refuses it to a child that shares memory.
 */
function namespaceOps(input: PlanInput): SpawnOp[] {
  return [
    call('make a cgroup namespace', 'unshare', CLONE_NEWCGROUP),
    ...(joinsNetwork(input)
      ? [call('join the network of the branch', 'setns', input.descriptors.network, CLONE_NEWNET)]
      : []),
    ...clockOps(input.profile, input.facts),
    call('make files with the modes given here', 'umask', 0),
  ]
}

function hostOps(input: PlanInput): SpawnOp[] {
  const name = cstring(input.hostname)
  return [
    call(`set the host name to "${input.hostname}"`, 'sethostname', name, name.length - 1),
    ...(joinsNetwork(input) ? [] : loopbackOps()),
  ]
}

const IFREQ_BYTES = 40
const IFREQ_FLAGS_OFFSET = 16

function loopbackOps(): SpawnOp[] {
  const request = new Uint8Array(IFREQ_BYTES)
  request.set(Buffer.from('lo'))
  new DataView(request.buffer).setUint16(IFREQ_FLAGS_OFFSET, IFF_UP, true)
  return [
    storing(call('open a socket for loopback', 'socket', AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), 'loopback'),
    call('set loopback up', 'ioctl', slot('loopback'), SIOCSIFFLAGS, request),
  ]
}

/** Above the numbers that a shell script uses; 0 to 2 are then overwritten in any order. */
const FIRST_SPARE = 10

function sessionOps(input: LockInput): SpawnOp[] {
  const spare = input.descriptors.stdio.map((from, index) =>
    storing(call(`keep descriptor ${index}`, 'fcntl', from, F_DUPFD_CLOEXEC, FIRST_SPARE), `stdio ${index}`),
  )
  const placed = spare.map((_, index) =>
    call(`set descriptor ${index}`, 'dup3', slot(`stdio ${index}`), index, 0),
  )
  return [call('begin a session', 'setsid'), ...spare, ...placed, call('set the usual umask', 'umask', 0o022)]
}

/** As the agent and without its capabilities: a directory that it may not enter is an error of the start. */
const directoryOps = (input: LockInput): SpawnOp[] => [
  call(`change to "${input.cwd}"`, 'chdir', cstring(input.cwd)),
]

/** Everything is close-on-exec already; this does not rely on it. */
const descriptorOps = (input: LockInput): SpawnOp[] => [
  call('close every other descriptor on exec', 'close_range', 3, 0xffffffff, CLOSE_RANGE_CLOEXEC),
  call('keep the status pipe for init', 'fcntl', input.descriptors.status, F_SETFD, 0),
]

/** Before the other filters, which do not let a descriptor out. */
function execNotifyOps(input: LockInput): SpawnOp[] {
  if (input.execNotify === undefined || input.execNotify === null) return []
  const { filter, socket } = input.execNotify
  return [...seccompOps([filter]), sendDescriptorOp('send the listener to the daemon', socket, LISTENER_SLOT)]
}

function execOp(input: LockInput): SpawnOp {
  const flags = initFlags(input.terminal, input.restart ?? null)
  const argv = ['puzzled-init', String(input.descriptors.status), flags, ...input.argv]
  const environment = Object.entries(input.environment).map(([name, value]) => `${name}=${value}`)
  return call(
    'execute init',
    'execveat',
    input.descriptors.init,
    cstring(''),
    { vector: argv.map(cstring) },
    { vector: environment.map(cstring) },
    AT_EMPTY_PATH,
  )
}
