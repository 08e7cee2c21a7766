import { closeSync, statSync } from 'node:fs'
import type { BranchRecord, Grant } from '../contract/branch.ts'
import type { Profile } from '../contract/profile.ts'
import type { SpawnResult } from '../contract/spawn.ts'
import { limitCgroup, openCgroup } from '../kernel/cgroup.ts'
import { spawn } from '../kernel/clone.ts'
import { initExecutable } from '../kernel/init-program.ts'
import { landlockAbi } from '../kernel/landlock.ts'
import { pipe } from '../kernel/pipe.ts'
import { PuzzledError } from '../lib/errors.ts'
import { UndoStack } from '../lib/undo.ts'
import { accountOf, idsOf, passwdWith } from './account.ts'
import { AgentProcess } from './agent.ts'
import { type CgroupPlacer, directCgroups } from './cgroups.ts'
import { agentEnvironment } from './environment.ts'
import { gatherFacts } from './facts.ts'
import { agentIdentity, type Identity } from './identity.ts'
import { watchInit } from './init-status.ts'
import { swappedOwners } from './owner-map.ts'
import type { OverlayLayers } from './places.ts'
import { rootPlaces } from './root-places.ts'
import { seccompFilters } from './seccomp.ts'
import type { Architecture } from './seccomp-rules.ts'
import { opsOf, type SpawnPlan, spawnPlan } from './spawn-plan.ts'
import { checkCommand, commandError, startError } from './start-error.ts'
import { openStdio, type Stdio, type StdioRequest } from './stdio.ts'

/** What the use cases ask for; see `agent/ports.ts`. */
export interface LaunchRequest {
  readonly record: BranchRecord
  readonly profile: Profile
  readonly mounts: readonly OverlayLayers[]
  readonly argv: readonly string[]
  readonly cwd: string
  /** What the profile lets through, and what the caller set. */
  readonly environment: Readonly<Record<string, string>>
  readonly stdio: StdioRequest
}

/** A network namespace that is ready, with the daemon's listeners inside. */
export interface BranchNetwork {
  readonly namespace: number
  readonly environment: Readonly<Record<string, string>>
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[]
}

export interface LauncherOptions {
  readonly cgroups?: CgroupPlacer
  /** Called for profiles whose network is not `none`; the caller closes it when the agent has ended. */
  readonly network?: (request: LaunchRequest) => Promise<BranchNetwork>
}

/** A user of its own for root's agents, made by sysusers; any high number serves where it is missing. */
const UNPRIVILEGED_USER = 'puzzled-agent'
const UNPRIVILEGED = { uid: 64_321, gid: 64_321 }

/** Starts agents. One instance per daemon. */
export class Launcher {
  readonly #cgroups: CgroupPlacer
  readonly #options: LauncherOptions

  constructor(options: LauncherOptions = {}) {
    this.#cgroups = options.cgroups ?? directCgroups()
    this.#options = options
  }

  /**
   * Resolves when the agent's first program runs. A failure names its step and leaves nothing behind. The agent's end
   * is in `exited`.
   */
  async start(request: LaunchRequest): Promise<AgentProcess> {
    checkCommand(request.argv, request.environment)
    checkDirectory(request)
    const undo = new UndoStack()
    try {
      const agent = await this.#start(request, undo)
      undo.keep()
      return agent
    } catch (error) {
      await undo.unwind()
      throw error
    }
  }

  /** Ends whatever a crashed daemon left of this branch. Mounts and namespaces end with the processes. */
  async sweep(id: string): Promise<void> {
    const { survivors } = await this.#cgroups.remove(id)
    if (survivors > 0)
      throw new PuzzledError('stuck', `${survivors} processes of branch ${id} cannot be ended`, {
        hint: 'They wait for a device or a network filesystem; the branch stays until they are gone',
        data: { branch: id, survivors },
      })
  }

  async #start(request: LaunchRequest, undo: UndoStack): Promise<AgentProcess> {
    const { record, profile } = request
    const identity = identityOf(record)
    const group = await this.#cgroups.place(record.id)
    undo.push('remove the cgroup', async () => {
      await this.#cgroups.remove(record.id)
    })
    const network = profile.network.mode === 'none' ? undefined : await this.#options.network?.(request)
    const stdio = openStdio(request.stdio, identity)
    undo.push('close the descriptors of the agent', stdio.abandon)
    const ownerMap = identity.shift === null ? null : await swappedOwners(0, identity.uid)
    const status = pipe()
    const closeWriter = once(() => closeSync(status.write))
    const closeReader = once(() => closeSync(status.read))
    undo.push('close the status pipe', () => {
      closeWriter()
      closeReader()
    })
    const { plan, grants } = planStart(request, {
      identity,
      network,
      stdio,
      descriptors: { status: status.write, ownerMap },
    })
    const limits = limitGroup(group, profile)
    const started = await runPlan(plan, group)
    closeWriter()
    stdio.closeChildEnds()
    if (!started.ok) throw startError({ ...started, total: opsOf(plan).length })
    return await this.#running(request, undo, {
      pid: started.pid,
      pidfd: started.pidfd,
      cgroup: group,
      status: watchInit(handOver(status.read, closeReader)),
      startedAt: new Date(),
      grants: [...plan.grants, ...grants, ...limits],
      streams: stdio.streams(),
    })
  }

  async #running(
    request: LaunchRequest,
    undo: UndoStack,
    started: ConstructorParameters<typeof AgentProcess>[0],
  ): Promise<AgentProcess> {
    const agent = new AgentProcess(started)
    undo.push('end the agent', () => agent.abandon())
    const first = await started.status.started
    if (first !== 'gone' && 'errnoName' in first) throw commandError(request.argv[0] ?? '', first.errnoName)
    return agent
  }
}

async function runPlan(plan: SpawnPlan, group: string): Promise<SpawnResult> {
  const cgroupFd = openCgroup(group)
  try {
    return await spawn({ ops: opsOf(plan), namespaces: plan.namespaces, cgroupFd })
  } finally {
    closeSync(cgroupFd)
  }
}

interface Prepared {
  readonly identity: Identity
  readonly network: BranchNetwork | undefined
  readonly stdio: Stdio
  readonly descriptors: { readonly status: number; readonly ownerMap: number | null }
}

function planStart(request: LaunchRequest, prepared: Prepared): { plan: SpawnPlan; grants: Grant[] } {
  const { record, profile } = request
  const { identity, network, stdio } = prepared
  const account = accountOf(record.requester.uid)
  const home = account?.home ?? '/home/agent'
  const passwd = passwdWith(identity.uid, identity.gid, home)
  const files = [
    ...(network?.files ?? []),
    ...(passwd === null ? [] : [{ path: '/etc/passwd', bytes: passwd }]),
  ]
  const facts = gatherFacts(interestingPaths(profile, files))
  const plan = spawnPlan({
    profile,
    requester: record.requester,
    identity,
    places: rootPlaces({
      profile,
      layers: request.mounts,
      nestedReadOnly: record.bases.flatMap((base) =>
        base.nested.filter((nested) => nested.handling === 'read-only').map((nested) => nested.path),
      ),
      facts,
      home,
      files,
    }),
    facts,
    hostname: `puzzle-${record.id}`,
    cwd: request.cwd,
    argv: request.argv,
    environment: agentEnvironment({
      granted: request.environment,
      network: network?.environment ?? {},
      user: accountOf(identity.uid)?.name ?? 'agent',
      home,
      shell: '/bin/sh',
      terminal: request.stdio.kind === 'pty',
    }),
    terminal: stdio.terminal,
    landlockAbi: landlockAbi(),
    seccomp: seccompFilters({
      program: profile.seccomp,
      architecture: process.arch as Architecture,
      sealMemfds: profile.exec.allow !== 'any',
    }),
    descriptors: {
      init: initExecutable(),
      status: prepared.descriptors.status,
      stdio: stdio.child,
      terminals: stdio.terminals,
      ownerMap: prepared.descriptors.ownerMap,
      network: network?.namespace ?? null,
    },
  })
  return { plan, grants: [identityGrant(record, identity), networkGrant(profile, network)] }
}

const interestingPaths = (profile: Profile, files: readonly { path: string }[]): string[] =>
  [
    ...profile.mounts,
    ...files,
    ...(profile.exec.allow === 'any' ? [] : profile.exec.allow),
    ...profile.landlock.read,
    ...profile.landlock.write,
  ].map((entry) => entry.path)

function identityOf(record: BranchRecord): Identity {
  const base = record.bases[0]
  if (base === undefined) throw new PuzzledError('base-invalid', `Branch ${record.id} has no base`)
  const { uid, gid } = statSync(base.path)
  return agentIdentity(record.requester, { uid, gid }, idsOf(UNPRIVILEGED_USER) ?? UNPRIVILEGED)
}

const identityGrant = (record: BranchRecord, identity: Identity): Grant => ({
  what: 'identity',
  requested: `uid ${record.requester.uid}`,
  granted:
    identity.shift === null
      ? `uid ${identity.uid}`
      : `uid ${identity.uid}, to which files of uid ${identity.shift.uid} look like its own`,
  full: true,
})

const networkGrant = (profile: Profile, network: BranchNetwork | undefined): Grant => ({
  what: 'network',
  requested: profile.network.mode,
  granted: network === undefined ? 'none' : profile.network.mode,
  full: network !== undefined || profile.network.mode === 'none',
})

/** Limits that no controller holds are metered by the budget instead, which is less: the user is told. */
function limitGroup(group: string, profile: Profile): Grant[] {
  const { memory, pids } = profile.budgets.limits
  const missing = limitCgroup(group, {
    ...(memory === undefined ? {} : { memoryBytes: memory }),
    ...(pids === undefined ? {} : { pids }),
  })
  const row = (what: string, limit: number | undefined, name: 'memoryBytes' | 'pids'): Grant[] =>
    limit === undefined
      ? []
      : [
          {
            what: `${what} limit`,
            requested: String(limit),
            granted: missing.includes(name) ? 'watched, not enforced by the kernel' : String(limit),
            full: !missing.includes(name),
          },
        ]
  return [...row('memory', memory, 'memoryBytes'), ...row('pids', pids, 'pids')]
}

/** The agent must start where the branch is: elsewhere its relative paths would mean something else than it believes. */
function checkDirectory(request: LaunchRequest): void {
  const inside = request.mounts.some(
    (layers) => request.cwd === layers.base || request.cwd.startsWith(`${layers.base}/`),
  )
  if (inside && !request.cwd.includes('\0')) return
  throw new PuzzledError(
    'usage',
    `The working directory ${JSON.stringify(request.cwd)} is not in a base of the branch`,
    { hint: `Start in ${request.mounts.map((layers) => layers.base).join(' or ')}` },
  )
}

/** From here on somebody else closes the descriptor. */
function handOver(descriptor: number, close: { cancel(): void }): number {
  close.cancel()
  return descriptor
}

/** Runs at most once; not at all after `cancel`. */
function once(run: () => void): (() => void) & { cancel(): void } {
  let done = false
  const call = (): void => {
    if (!done) run()
    done = true
  }
  return Object.assign(call, {
    cancel: () => {
      done = true
    },
  })
}
