import { rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  cgroupHierarchy,
  controllersOf,
  createCgroup,
  enableControllers,
  killCgroup,
  removeCgroup,
} from '../kernel/cgroup.ts'
import { limitCgroup } from '../kernel/cgroup-limits.ts'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import type { CgroupShares, LimitName } from './kernel-limits.ts'

/** Where the processes of a branch live. The daemon writes directly, or asks systemd for a scope. */
export interface CgroupPlacer {
  /**
   * Makes (or finds) the cgroup of a branch, with the host's controllers switched on for its children, and gives it its
   * shares.
   */
  place(id: string, shares: CgroupShares): Promise<PlacedCgroup>
  /** Its last process is collected and its counters are read: what held it open may go. */
  ended?(id: string): void
  /** Where it would be; undefined when it cannot exist. */
  locate(id: string): string | undefined
  /** Kills what is left and removes it. Idempotent. */
  remove(id: string): Promise<{ terminated: number; survivors: number }>
}

export interface PlacedCgroup {
  readonly cgroup: string
  /** Shares that no controller holds. */
  readonly refused: readonly LimitName[]
}

const SLICE = 'puzzle.slice'

/** Names as systemd would give them, so that tools and people find the same tree in both cases. */
export const cgroupName = (id: string): string => `${SLICE}/puzzle-${id}.scope`

/** The cgroup of all branches, from that of one; undefined where somebody placed it elsewhere. */
export function sliceOf(cgroup: string): string | undefined {
  const at = cgroup.indexOf(`/${SLICE}/`)
  return at < 0 ? undefined : cgroup.slice(0, at + 1 + SLICE.length)
}

/** Cgroups made by hand, for hosts on which no systemd owns the hierarchy. */
export function directCgroups(find: () => string | undefined = cgroupHierarchy): CgroupPlacer {
  let found: string | undefined
  const hierarchy = (): string | undefined => {
    found ??= find()
    return found
  }
  const locate = (id: string): string | undefined => {
    const root = hierarchy()
    return root === undefined ? undefined : join(root, cgroupName(id))
  }
  return {
    locate,
    place: async (id, shares) => {
      const root = hierarchy()
      if (root === undefined)
        throw new PuzzledError('feature-missing', 'No cgroup v2 hierarchy is mounted', {
          hint: 'mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified',
        })
      const path = join(root, cgroupName(id))
      createCgroup(path)
      if (controllersOf(root).length > 0)
        for (const group of [root, join(root, SLICE), path]) enableControllers(group)
      return { cgroup: path, refused: limitCgroup(path, shares) }
    },
    ended: (id) => {
      const path = locate(id)
      if (path !== undefined) removeIfEmpty(dirname(path))
    },
    remove: async (id) => {
      const path = locate(id)
      if (path === undefined) return { terminated: 0, survivors: 0 }
      const result = await killCgroup(path)
      removeCgroup(path)
      removeIfEmpty(dirname(path))
      return result
    },
  }
}

/** The slice goes with its last branch; while others are in it, it stays. */
function removeIfEmpty(slice: string): void {
  try {
    rmdirSync(slice)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno !== 'EBUSY' && errno !== 'ENOTEMPTY' && errno !== 'ENOENT') throw error
  }
}
