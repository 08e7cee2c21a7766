import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  cgroupHierarchy,
  createCgroup,
  enableControllers,
  killCgroup,
  removeCgroup,
} from '../kernel/cgroup.ts'
import type { BusCall, BusConnection } from '../lib/bus-connection.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type CgroupPlacer, cgroupName, directCgroups } from './cgroups.ts'
import { type Holder, startHolder } from './holder.ts'
import type { CgroupShares, LimitName } from './kernel-limits.ts'

/** Asks systemd for a scope with this process in it; resolves when the job is accepted. */
export type StartScope = (
  unit: string,
  pid: number,
  description: string,
  shares: CgroupShares,
) => Promise<void>

export const SLICE = 'puzzle.slice'
const NO_LIMIT = 2n ** 64n - 1n
const SCOPE_MILLIS = 5000
/** A machine that has just begun is slow to answer. */
const ANSWER_MILLIS = 60_000

/**
 * `StartTransientUnit` on the machine's system bus, where PID 1 is: `DBUS_SYSTEM_BUS_ADDRESS` says on which bus the
 * daemon is found, and systemd is not told of it. A connection of its own: it must not keep a command line from ending.
 * What stands between us and systemd may let the question through and not the answer (a policy of SELinux does).
 */
export function scopesOfSystemd(
  connect: () => Promise<Pick<BusConnection, 'call' | 'close'>> = connectSystemBus,
  patience = ANSWER_MILLIS,
): StartScope {
  return async (unit, pid, description, shares) => {
    const bus = await connect()
    const late = new AbortController()
    try {
      const answer = bus.call(startTransientUnit(unit, pid, description, shares))
      await Promise.race([answer, silenceAfter(patience, unit, late.signal)])
    } finally {
      late.abort()
      await bus.close()
    }
  }
}

async function connectSystemBus(): Promise<BusConnection> {
  const { BusConnection, SYSTEM_BUS } = await import('../lib/bus-connection.ts')
  return BusConnection.connect(SYSTEM_BUS)
}

/** Resolves when it is over; throws where nobody answered until then. */
async function silenceAfter(millis: number, unit: string, over: AbortSignal): Promise<void> {
  const ended = await delay(millis, false, { signal: over }).catch(() => true)
  if (ended) return
  throw new PuzzledError('start-failed', `systemd did not answer within ${millis / 1000} s about ${unit}`, {
    hint: 'Under SELinux, ausearch -m USER_AVC -ts recent shows whether its answers are refused; journalctl -u dbus.',
  })
}

const startTransientUnit = (...[unit, pid, description, shares]: Parameters<StartScope>): BusCall => ({
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
  member: 'StartTransientUnit',
  signature: 'ssa(sv)a(sa(sv))',
  body: [
    unit,
    'fail',
    [
      ['Description', ['s', description]],
      ['Slice', ['s', SLICE]],
      ['PIDs', ['au', [pid]]],
      // What is below the scope is ours: systemd neither moves processes there nor writes limits.
      ['Delegate', ['b', true]],
      ['CollectMode', ['s', 'inactive-or-failed']],
      // The limits of a branch are on its cgroup within, where they can be extended; the manager's default for units
      // (a share of what the machine can hold) must not be narrower than a profile.
      ['TasksMax', ['t', NO_LIMIT]],
      // Shares count among siblings, and the scopes are siblings.
      ...(shares.cpuWeight === undefined ? [] : [['CPUWeight', ['t', BigInt(shares.cpuWeight)]]]),
      ...(shares.ioWeight === undefined ? [] : [['IOWeight', ['t', BigInt(shares.ioWeight)]]]),
    ],
    [],
  ],
})

/**
 * A transient scope for each branch. systemd makes a scope only around a process, and the agent must never be outside of
 * its cgroup, so a waiting process goes first. It stays until the agent's end is known: systemd removes an empty scope at
 * once, and with it the counter that tells an out-of-memory kill from any other.
 */
export function systemdCgroups(startScope: StartScope, hierarchy = cgroupHierarchy): CgroupPlacer {
  const holders = new Map<string, Holder>()
  const release = (id: string): void => {
    holders.get(id)?.release()
    holders.delete(id)
  }
  const scopeOf = (id: string): string | undefined => {
    const root = hierarchy()
    return root === undefined ? undefined : join(root, cgroupName(id))
  }
  const locate = (id: string): string | undefined => {
    const scope = scopeOf(id)
    return scope === undefined ? undefined : join(scope, 'branch')
  }
  return {
    locate,
    place: async (id, shares) => {
      const scope = scopeOf(id)
      if (scope === undefined) throw new PuzzledError('feature-missing', 'No cgroup v2 hierarchy is mounted')
      const holder = await startHolder([])
      holders.set(id, holder)
      try {
        await startScope(`puzzle-${id}.scope`, holder.pid, `puzzled branch ${id}`, shares)
        await untilIn(scope, holder.pid)
        // A cgroup that hands on controllers may hold no processes itself.
        createCgroup(join(scope, 'hold'))
        writeFileSync(join(scope, 'hold', 'cgroup.procs'), String(holder.pid))
        createCgroup(join(scope, 'branch'))
        for (const group of [scope, join(scope, 'branch')]) enableControllers(group)
        return { cgroup: join(scope, 'branch'), refused: sharesRefused(scope, shares) }
      } catch (error) {
        release(id)
        throw error
      }
    },
    ended: (id) => {
      const scope = scopeOf(id)
      release(id)
      if (scope !== undefined) removeCgroup(join(scope, 'hold'))
    },
    remove: async (id) => {
      const [scope, branch] = [scopeOf(id), locate(id)]
      release(id)
      if (scope === undefined || branch === undefined) return { terminated: 0, survivors: 0 }
      const result = await killCgroup(branch)
      // systemd removes the scope itself when it is empty.
      for (const group of [branch, join(scope, 'hold')]) removeCgroup(group)
      return result
    },
  }
}

/** systemd sets what the host has and says nothing about the rest. */
function sharesRefused(scope: string, { cpuWeight, ioWeight }: CgroupShares): LimitName[] {
  const taken = (file: string, weight: number): boolean =>
    existsSync(join(scope, file)) &&
    new RegExp(`^(default )?${weight}$`, 'm').test(readFileSync(join(scope, file), 'utf8'))
  return [
    ...(cpuWeight === undefined || taken('cpu.weight', cpuWeight) ? [] : (['cpuWeight'] as const)),
    ...(ioWeight === undefined || taken('io.weight', ioWeight) ? [] : (['ioWeight'] as const)),
  ]
}

/** systemd answers when the job is queued; the move happens a moment later. */
async function untilIn(scope: string, pid: number): Promise<void> {
  const end = performance.now() + SCOPE_MILLIS
  while (
    !existsSync(scope) ||
    !readFileSync(join(scope, 'cgroup.procs'), 'utf8').split('\n').includes(String(pid))
  ) {
    if (performance.now() > end)
      throw new PuzzledError('start-failed', `systemd did not make ${scope} in time`, {
        hint: 'systemctl status puzzle.slice; journalctl -u init.scope',
      })
    await delay(1)
  }
}

/** Scopes where systemd owns the hierarchy, directories where nobody does. */
export const hostCgroups = (): CgroupPlacer =>
  existsSync('/run/systemd/system') ? systemdCgroups(scopesOfSystemd()) : directCgroups()
