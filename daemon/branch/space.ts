import { join } from 'node:path'
import type { BranchRecord } from '../contract/branch.ts'
import { fstatfs } from '../kernel/file-data.ts'
import { openRoot, withFd } from '../kernel/paths.ts'
import { getProject, projectQuota, projectUsage, setProjectLimits } from '../kernel/quota.ts'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { WorkerLink } from '../lib/worker-link.ts'
import type { DeletionQuestion } from './deletion-walk.ts'
import { type LayerStore, upperOf } from './overlay.ts'
import { measureTree, type Use } from './space-walk.ts'

/** What the layers of one branch take on disk. */
export interface SpaceReader {
  /** By budget kind; empty as long as nobody knows. Throws when it cannot be known. */
  read(): { disk?: number; inodes?: number }
  /** The same when nothing writes there any more: exact, and never out of date. */
  last(): Promise<{ disk: number; inodes: number }>
  /** A budget was extended. */
  extend(kind: 'disk' | 'inodes', limit: number): void
  /** The filesystem refuses the write that would pass a limit. */
  readonly held: boolean
}

export interface DeletionReader {
  read(): number | undefined
  extend(limit: number): void
}

/** Most commands are over before a first walk would be. */
const FIRST_WALK_MILLIS = 1_000
/** A walk may take this part of a thread's time, and never follows the last one at once. */
const WALK_SHARE = 1 / 20
const PAUSE_MILLIS = 2_000
/** A thread that is ended in the middle of a walk leaves open where it was; most walks are over sooner. */
const PATIENCE_MILLIS = 1_000
/** Some milliseconds. */
const MOST_AT_ONCE = 500

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

  /**
   * For a branch whose layers exist. Whatever its limits, reading throws `no-space` when the store's filesystem runs out
   * of room: the agent stands still before nobody on this machine can write any more.
   */
  readerOf(id: string, limits: { disk?: number } = {}): SpaceReader {
    const directory = this.#store.directory(id)
    const layers = join(directory, 'layers')
    const project = projectOf(layers)
    const held = project !== null
    const reader = held ? counted(layers, project) : this.#walked(layers, limits.disk)
    // Not of the layers: inside a project XFS answers with what is left of its quota, and a used up budget is no full disk.
    const demandRoom = roomKeeper(directory)
    return {
      read: () => {
        demandRoom()
        return reader.read()
      },
      last: () => reader.last(),
      extend: (kind, limit) => reader.extend(kind, limit),
      held,
    }
  }

  async close(): Promise<void> {
    await this.#walker.close(PATIENCE_MILLIS)
  }

  /** How many paths of its bases a branch has deleted; undefined as long as nobody knows. */
  deletionsOf({ id, bases, layers }: BranchRecord, limit: number): DeletionReader {
    let most = limit
    const directory = join(this.#store.directory(id), 'layers')
    const questions = (): DeletionQuestion[] =>
      bases.flatMap(({ path }, index) =>
        Array.from({ length: layers }, (_, layer) => ({
          upper: upperOf(directory, layer + 1, index),
          base: path,
          most,
        })),
      )
    const count = new NowAndThen(
      async () => (await this.#walker.call('deletions', questions())) as number,
      this.#now,
    )
    return {
      read: () => count.read(),
      extend: (to) => {
        most = to
      },
    }
  }

  #walked(layers: string, disk: number | undefined): Omit<SpaceReader, 'held'> {
    let limit = disk ?? Number.POSITIVE_INFINITY
    let usedAtWalk = roomOf(layers).used
    const measure = async (): Promise<{ disk: number; inodes: number }> => {
      const { bytes, inodes } = (await this.#walker.call('measure', layers)) as Use
      return { disk: bytes, inodes }
    }
    const walk = new NowAndThen(async () => {
      usedAtWalk = roomOf(layers).used
      return measure()
    }, this.#now)
    return {
      // Nobody can have used more than the whole filesystem has grown by: only when that could be too much, at once.
      read: () => walk.read((last) => (last?.disk ?? 0) + roomOf(layers).used - usedAtWalk >= limit) ?? {},
      // Few files are counted sooner than a thread is asked to.
      last: async () => {
        const use = measureTree(layers, MOST_AT_ONCE)
        return use === null ? measure() : { disk: use.bytes, inodes: use.inodes }
      },
      extend: (kind, to) => {
        if (kind === 'disk') limit = to
      },
    }
  }
}

/** What takes a while to find out: asked again and again, and read at once as it was last known. */
class NowAndThen<Known> {
  readonly #ask: () => Promise<Known>
  readonly #now: () => number
  #last: Known | undefined
  #failure: { error: unknown } | undefined
  #next: number

  constructor(ask: () => Promise<Known>, now: () => number) {
    this.#ask = ask
    this.#now = now
    this.#next = now() + FIRST_WALK_MILLIS
  }

  read(hurry: (last: Known | undefined) => boolean = () => false): Known | undefined {
    if (this.#failure !== undefined) {
      // The agent stands still for it. Whoever lets it go on begins with another walk.
      const { error } = this.#failure
      this.#failure = undefined
      this.#next = this.#now()
      throw error
    }
    const due = this.#now() >= this.#next || (this.#next !== Number.POSITIVE_INFINITY && hurry(this.#last))
    if (due)
      this.#walk().catch((error: unknown) => {
        this.#failure = { error }
      })
    return this.#last
  }

  async #walk(): Promise<void> {
    const began = this.#now()
    this.#next = Number.POSITIVE_INFINITY
    this.#last = await this.#ask()
    const ended = this.#now()
    this.#next = ended + Math.max(PAUSE_MILLIS, (ended - began) / WALK_SHARE)
  }
}

const roomOf = (path: string): { free: number; used: number; total: number } =>
  withFd(openRoot(path), (fd) => {
    const { blockSize, blocksFree, blocksTotal } = fstatfs(fd)
    const [free, total] = [blocksFree * blockSize, blocksTotal * blockSize]
    return { free, total, used: total - free }
  })

const MOST_RESERVE = 1 << 30
const RESERVE_SHARE = 1 / 20

/** On a disk that was nearly full before, a branch may still use half of what there was. */
function roomKeeper(directory: string): () => void {
  const { free: atStart, total } = roomOf(directory)
  const floor = Math.min(MOST_RESERVE, total * RESERVE_SHARE, atStart / 2)
  return () => {
    const { free } = roomOf(directory)
    if (free >= floor) return
    const left = `${Math.floor(free / (1 << 20))} MiB`
    throw new PuzzledError('no-space', `The filesystem of the store has only ${left} left`, {
      hint: 'Make room there (puzzlectl gc, or discard branches), then extend a budget of the branch.',
      data: { free, floor },
    })
  }
}

/** The project of the layers; null where nothing is counted. */
const projectOf = (layers: string): { type: string; project: number } | null =>
  withFd(openRoot(layers), (fd) => {
    const { type } = fstatfs(fd)
    const { project } = projectQuota(fd, type).enforced ? getProject(fd) : { project: 0 }
    return project === 0 ? null : { type, project }
  })

const counted = (
  layers: string,
  { type, project }: { type: string; project: number },
): Omit<SpaceReader, 'held'> => {
  const read = (): { disk: number; inodes: number } =>
    withFd(openRoot(layers), (fd) => {
      const { usedBytes, usedInodes } = projectUsage(fd, type, project)
      return { disk: usedBytes, inodes: usedInodes }
    })
  return {
    read,
    last: async () => read(),
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
  }
}
