import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, PuzzledError } from '../lib/errors.ts'

export interface RoomLimits {
  /** Of all queues of one user. */
  readonly perUser: number
  /** Of all queues of the store. */
  readonly all: number
}

/** A branch of the store, wherever it is in its life. */
export interface QueueOwner {
  readonly id: string
  readonly uid: number
  readonly user: string
}

/** How long what the closed queues hold is believed: they only shrink, when somebody drops, commits or discards. */
const BELIEVED_MS = 10_000

/** What one open queue takes of the room, against what the others hold. */
export interface QueueShare {
  /** Resolves when `take` can say something true; undefined where it can already. */
  ready(): Promise<void> | undefined
  /** What is there already: never refused. */
  hold(bytes: number): void
  /** Throws `queue-full`. */
  take(bytes: number): void
  give(bytes: number): void
  /** The queue is closed: what it holds is found on the disk from now on. */
  close(): void
}

/**
 * The disk that queues may fill, together: a limit of each branch alone would be one that a user with many branches
 * does not have. Open queues are counted; what the others left is looked up on the disk, once something is queued.
 */
export class QueueRoom {
  readonly #directoryOf: (id: string) => string
  readonly #branches: () => Promise<readonly QueueOwner[]>
  readonly #limits: () => RoomLimits
  readonly #open = new Map<string, { readonly uid: number; bytes: number }>()
  #resting: ReadonlyMap<number, number> = new Map()
  #until = 0
  #looking: Promise<void> | undefined

  constructor(
    directoryOf: (id: string) => string,
    branches: () => Promise<readonly QueueOwner[]>,
    limits: () => RoomLimits,
  ) {
    this.#directoryOf = directoryOf
    this.#branches = branches
    this.#limits = limits
  }

  /** The share of a queue that is being opened. What it holds already, it says by `hold`. */
  share(owner: QueueOwner): QueueShare {
    const mine = { uid: owner.uid, bytes: 0 }
    this.#open.set(owner.id, mine)
    this.#until = 0
    return {
      ready: () => (performance.now() < this.#until ? undefined : this.#look()),
      hold: (bytes) => {
        mine.bytes += bytes
      },
      take: (bytes) => {
        this.#refuseOver(owner, bytes)
        mine.bytes += bytes
      },
      give: (bytes) => {
        mine.bytes -= bytes
      },
      close: () => {
        this.#open.delete(owner.id)
        this.#until = 0
      },
    }
  }

  #refuseOver({ uid, user }: QueueOwner, bytes: number): void {
    const { perUser, all } = this.#limits()
    let [mine, total] = [bytes, bytes]
    for (const [resting, held] of this.#resting) {
      total += held
      if (resting === uid) mine += held
    }
    for (const one of this.#open.values()) {
      total += one.bytes
      if (one.uid === uid) mine += one.bytes
    }
    const hint =
      'Commit or discard a branch that waits, or drop requests: puzzlectl queue ls, puzzlectl queue drop'
    if (mine > perUser)
      throw new PuzzledError('queue-full', `The queues of ${user} hold at most ${perUser} bytes together`, {
        hint: `${hint} (the limit is queues.per_user of puzzled.yaml)`,
      })
    if (total > all)
      throw new PuzzledError('queue-full', `All queues of this machine hold at most ${all} bytes together`, {
        hint: `${hint} (the limit is queues.all of puzzled.yaml)`,
      })
  }

  /** One look at a time, whoever waits for it. */
  #look(): Promise<void> {
    this.#looking ??= this.#readResting().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #readResting(): Promise<void> {
    const resting = new Map<number, number>()
    const branches = await this.#branches()
    for (const { id, uid } of branches) {
      if (this.#open.has(id)) continue
      const bytes = await sizeOf(join(this.#directoryOf(id), 'queue'))
      // One that was opened meanwhile counts for itself.
      if (bytes > 0 && !this.#open.has(id)) resting.set(uid, (resting.get(uid) ?? 0) + bytes)
    }
    this.#resting = resting
    this.#until = performance.now() + BELIEVED_MS
  }
}

/** Bytes in the files of a directory; none where there is none. */
async function sizeOf(directory: string): Promise<number> {
  let sum = 0
  try {
    for (const name of await readdir(directory)) sum += (await stat(join(directory, name))).size
  } catch (error) {
    // Discarded while it was looked at: it holds nothing any more.
    if (errnoOf(error) !== 'ENOENT') throw error
  }
  return sum
}
