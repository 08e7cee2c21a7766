import { join } from 'node:path'
import type { AgentAgain, BranchRecord, Grant, RestartPolicy } from '../contract/branch.ts'
import type { CommandLimits } from '../contract/engine.ts'
import type { Profile } from '../contract/profile.ts'
import { cgroupHierarchy } from '../kernel/cgroup.ts'
import { diskOf, ioWeightWorks, limitCgroup } from '../kernel/cgroup-limits.ts'
import { mountReadOnly } from '../kernel/mount.ts'
import { mountTerminals } from '../kernel/pty.ts'
import { PuzzledError } from '../lib/errors.ts'
import { UndoStack } from '../lib/undo.ts'
import type { CgroupPlacer } from './cgroups.ts'
import { ExecGate } from './exec-gate.ts'
import type { OutputObserver } from './handed-through.ts'
import { kernelLimits, type LimitName, limitGrants, requireLimits, sharesOf } from './kernel-limits.ts'
import { swappedOwners } from './owner-map.ts'
import type { OverlayLayers } from './places.ts'
import { RunningBranch } from './running-branch.ts'
import { namespacesOf, type Planner, type SpawnPlan, spawnPlan } from './spawn-plan.ts'
import { checkCommand, checkDirectory } from './start-error.ts'
import { closer, startProcess } from './start-process.ts'
import type { StdioRequest } from './stdio.ts'
import { hostCgroups } from './systemd-cgroups.ts'
import {
  type BranchNetwork,
  environmentOf,
  execNotifyOf,
  identityOf,
  type World,
  worldGrants,
  worldInside,
  worldOf,
} from './world.ts'

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
  readonly observe?: OutputObserver
  /** Of the first program and what it starts. */
  readonly limits?: CommandLimits
  readonly restart?: RestartPolicy | null
  /** Is told when the agent has ended and is started again. */
  readonly restarting?: (again: AgentAgain) => void
  /** The file in which the branch's denials are written; the agent may read it. */
  readonly denials?: string
}

export interface LauncherOptions {
  readonly cgroups?: CgroupPlacer
  /** Called for profiles whose network is not `none`; the caller closes it when the agent has ended. */
  readonly network?: (request: LaunchRequest) => Promise<BranchNetwork>
  /** Instead of `spawnPlan`: the layer test leaves one layer out at a time. No profile reaches this. */
  readonly planner?: Planner
}

/** Starts agents. One instance per daemon. */
export class Launcher {
  readonly #cgroups: CgroupPlacer
  readonly #network: LauncherOptions['network']
  readonly #planner: Planner

  constructor(options: LauncherOptions = {}) {
    this.#cgroups = options.cgroups ?? hostCgroups()
    this.#network = options.network
    this.#planner = options.planner ?? spawnPlan
  }

  /**
   * Resolves when the agent's first program runs. A failure names its step and leaves nothing behind. The agent's end
   * is in `exited`.
   */
  async start(request: LaunchRequest): Promise<RunningBranch> {
    checkCommand(request.argv, request.environment)
    checkDirectory(request.cwd, request.mounts)
    const undo = new UndoStack()
    try {
      const branch = await this.#start(request, undo)
      undo.keep()
      return branch
    } catch (error) {
      throw await undo.unwindAfter(error)
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

  async #networkOf(request: LaunchRequest): Promise<BranchNetwork | null> {
    return request.profile.network.mode === 'none' ? null : ((await this.#network?.(request)) ?? null)
  }

  async #start(request: LaunchRequest, undo: UndoStack): Promise<RunningBranch> {
    const { record, profile } = request
    const once: Once = { network: await this.#networkOf(request), world: null, plan: null }
    const identity = identityOf(record)
    const ownerMap = identity.shift === null ? null : await swappedOwners(0, identity.uid)
    const { cgroup, refused } = await this.#cgroups.place(record.id, sharesOf(profile.resources))
    undo.push('remove the cgroup of the branch', async () => {
      await this.#cgroups.remove(record.id)
    })
    const limits = setLimits(cgroup, request, refused)
    const terminals = mountTerminals()
    const closeTerminals = closer(terminals)
    undo.push('close the terminals', closeTerminals)
    const denials = openDenials(request, undo)
    const execGate = execGateOf(profile)
    undo.push('close the exec listeners', () => execGate?.close())
    const process = await startProcess(
      {
        stdio: request.stdio,
        terminals,
        owner: identity,
        // Beneath the branch's own cgroup, beside commands that join: a cgroup with children may hold no processes.
        cgroup: join(cgroup, 'agent'),
        extent: cgroup,
        command: request.argv[0] ?? '',
        limits: request.limits ?? {},
        execGate,
        ...(request.observe === undefined ? {} : { observe: request.observe }),
        ...(request.restarting === undefined ? {} : { restarting: request.restarting }),
        onCollected: () => {
          closeTerminals()
          execGate?.close()
          this.#cgroups.ended?.(record.id)
        },
        namespaces: namespacesOf(once.network?.namespace ?? null, this.#planner.leavesOut),
        plan: (descriptors, terminal, socket) => {
          const all = { ...descriptors, terminals, denials: denials.descriptor, ownerMap }
          once.world = worldOf(record, profile, request.mounts, once.network, identity)
          once.plan = planStart(this.#planner, request, once.world, { terminal, socket }, all)
          return once.plan
        },
      },
      undo,
    )
    execGate?.begin()
    // The agent's own copy of the descriptor did its work: the mount is in its root now.
    denials.close()
    const { world, plan } = plannedOnce(once)
    return new RunningBranch({
      world: worldInside(world),
      process,
      cgroup,
      terminals,
      grants: [...worldGrants(world), ...plan.grants, ...limits],
      execGate,
      layers: request.mounts,
      observe: request.observe ?? (() => undefined),
    })
  }
}

/** A detached mount of the list; null where there is none. */
function openDenials(
  { denials }: LaunchRequest,
  undo: UndoStack,
): { descriptor: number | null; close(): void } {
  const descriptor = denials === undefined ? null : mountReadOnly(denials)
  const close = descriptor === null ? () => undefined : closer(descriptor)
  undo.push('close the list of denials', close)
  return { descriptor, close }
}

function execGateOf({ budgets }: Profile): ExecGate | null {
  const limit = budgets.limits.exec
  return limit === undefined ? null : new ExecGate(limit)
}

/** What closures that live as long as the agent must not hold: the contents of files take up a megabyte. */
interface Once {
  network: BranchNetwork | null
  world: World | null
  plan: SpawnPlan | null
}

/** Takes them out. */
function plannedOnce(once: Once): { world: World; plan: SpawnPlan } {
  const { world, plan } = once
  if (world === null || plan === null) throw new PuzzledError('internal', 'The agent was started unplanned')
  once.network = null
  once.world = null
  once.plan = null
  return { world, plan }
}

const planStart = (
  planner: Planner,
  request: LaunchRequest,
  world: World,
  options: { readonly terminal: boolean; readonly socket: number | null },
  descriptors: Omit<Parameters<typeof spawnPlan>[0]['descriptors'], 'network'>,
): SpawnPlan =>
  planner({
    ...world,
    requester: request.record.requester,
    hostname: `puzzle-${request.record.id}`,
    cwd: request.cwd,
    argv: request.argv,
    environment: environmentOf(world, request.environment, request.stdio.kind === 'pty'),
    terminal: options.terminal,
    restart: request.restart ?? null,
    execNotify: execNotifyOf(options.socket),
    descriptors: { ...descriptors, network: world.network?.namespace ?? null },
  })

/** Disks of the bases and of the layers: what a limit of rates is set on. */
const disksOf = ({ mounts }: LaunchRequest): string[] => [
  ...new Set(mounts.flatMap(({ base, upper }) => [base, upper].flatMap((path) => diskOf(path) ?? []))),
]

/** Sets the limits of a branch on its cgroup, whose shares `place` has set, and says which of them hold. */
function setLimits(cgroup: string, request: LaunchRequest, refused: readonly LimitName[]): Grant[] {
  const { profile } = request
  const disks = Object.keys(profile.resources).some((name) => name.startsWith('io')) ? disksOf(request) : []
  const limits = kernelLimits(profile, disks)
  const missing = [...limitCgroup(cgroup, limits), ...refused]
  if (profile.resources.ioWeight !== undefined && !ioWeightWorks(cgroupHierarchy() ?? '', disks))
    missing.push('ioWeight')
  requireLimits(profile, missing)
  return limitGrants(profile, { ...limits, ...sharesOf(profile.resources) }, missing)
}
