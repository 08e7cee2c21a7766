import { join } from 'node:path'
import { fstatfs } from '../kernel/file-data.ts'
import { openRoot, withFd } from '../kernel/paths.ts'
import { getProject, projectQuota, projectUsage, setProjectLimits } from '../kernel/quota.ts'
import { workerPath } from '../lib/assets.ts'
import { WorkerLink } from '../lib/worker-link.ts'
import type { LayerStore } from './overlay.ts'
import type { Use } from './space-walk.ts'

/** What the layers of one branch take on disk. */
export interface SpaceReader {
  /** By budget kind; empty as long as nobody knows. Throws when it cannot be known. */
  read(): { disk?: number; inodes?: number }
  /** A budget was extended. */
  extend(kind: 'disk' | 'inodes', limit: number): void
}

/** Most commands are over before a first walk would be. */
const FIRST_WALK_MILLIS = 1_000
/** A walk may take this part of a thread's time, and never follows the last one at once. */
const WALK_SHARE = 1 / 20
const PAUSE_MILLIS = 2_000

/**
 * Reads the project quota where the store's filesystem has one: exact, and one system call. Elsewhere the layers are
 * walked now and then. A walk does not see files that were removed while a process has them open.
 */
export class BranchSpace {
  readonly #store: LayerStore
  readonly #now: () => number
  readonly #walker = new WorkerLink(workerPath('space'))

  constructor(store: LayerStore, now: () => number = () => performance.now()) {
    this.#store = store
    this.#now = now
  }

  /** For a branch whose layers exist. */
  readerOf(id: string): SpaceReader {
    const layers = join(this.#store.directory(id), 'layers')
    const project = projectOf(layers)
    return project === null ? this.#walked(layers) : counted(layers, project)
  }

  async close(): Promise<void> {
    await this.#walker.close()
  }

  #walked(layers: string): SpaceReader {
    let last: { disk?: number; inodes?: number } = {}
    let failure: unknown
    let next = this.#now() + FIRST_WALK_MILLIS
    const walk = async (): Promise<void> => {
      const began = this.#now()
      next = Number.POSITIVE_INFINITY
      const { bytes, inodes } = (await this.#walker.call('measure', layers)) as Use
      last = { disk: bytes, inodes }
      const ended = this.#now()
      next = ended + Math.max(PAUSE_MILLIS, (ended - began) / WALK_SHARE)
    }
    return {
      read: () => {
        if (failure !== undefined) throw failure
        if (this.#now() >= next)
          walk().catch((error: unknown) => {
            failure = error
          })
        return last
      },
      extend: () => undefined,
    }
  }
}

/** The project of the layers; null where nothing is counted. */
const projectOf = (layers: string): { type: string; project: number } | null =>
  withFd(openRoot(layers), (fd) => {
    const { type } = fstatfs(fd)
    const { project } = projectQuota(fd, type).enforced ? getProject(fd) : { project: 0 }
    return project === 0 ? null : { type, project }
  })

const counted = (layers: string, { type, project }: { type: string; project: number }): SpaceReader => ({
  read: () =>
    withFd(openRoot(layers), (fd) => {
      const { usedBytes, usedInodes } = projectUsage(fd, type, project)
      return { disk: usedBytes, inodes: usedInodes }
    }),
  extend: (kind, limit) =>
    withFd(openRoot(layers), (fd) => {
      const { bytes, inodes } = projectUsage(fd, type, project)
      setProjectLimits(
        fd,
        type,
        project,
        kind === 'disk' ? { bytes: limit, inodes } : { bytes, inodes: limit },
      )
    }),
})
