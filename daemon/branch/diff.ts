import { opendirSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import type { BranchRecord, Requester } from '../contract/branch.ts'
import type { Change, Changeset, QueuedRequestSummary } from '../contract/changeset.ts'
import type { ContentPair, Selection } from '../contract/engine.ts'
import type { ErrorCode } from '../contract/errors.ts'
import { workerPath } from '../lib/assets.ts'
import { PuzzledError } from '../lib/errors.ts'
import { startWorker } from '../lib/lean-heap.ts'
import { withRequests } from './changeset.ts'
import type { DiffJob, DiffMessage } from './diff-job.ts'
import { readBothSides } from './diff-sides.ts'
import { forkedRoot, type LayerStore, layerMounts } from './overlay.ts'
import { packedChanges } from './packed-change.ts'
import { filesystemMark } from './same-filesystem.ts'
import { selectChanges } from './select.ts'

export interface DiffOptions {
  onProgress?: (paths: number) => void
}

/** What a branch would change, computed in a worker and received in pieces. */
export class LayerDiffer {
  readonly #store: LayerStore
  readonly #sameThread: boolean

  /** `sameThread`: for a process that serves nobody meanwhile. A thread takes longer to start than most diffs to run. */
  constructor(store: LayerStore, { sameThread = false }: { sameThread?: boolean } = {}) {
    this.#store = store
    this.#sameThread = sameThread
  }

  /** A daemon has all files of the program before it serves. */
  async load(): Promise<void> {
    await import('./diff-job.ts')
  }

  async diff(record: BranchRecord, options: DiffOptions = {}): Promise<Changeset> {
    const job = diffJob(record, this.#store.directory(record.id))
    const gathered = new Gathered(job, options)
    if (this.#sameThread || isUntouched(record, job)) return onThisThread(job, gathered)
    const worker = startWorker(workerPath('diff'), {
      workerData: job,
      // Encoded changes live outside the heap; without a limit a short-lived isolate rarely collects.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    })
    try {
      return await fromWorker(worker, gathered)
    } finally {
      await worker.terminate()
    }
  }

  select(changeset: Changeset, selection: Selection): Changeset {
    return selectChanges(changeset, selection)
  }

  withRequests(changeset: Changeset, requests: readonly QueuedRequestSummary[]): Changeset {
    return withRequests(changeset, requests)
  }

  /**
   * Both sides of one path that the branch touches, each cut at `limit`; symlinks give their target, everything else
   * null. `reader` is whose rights count; null reads as the daemon.
   */
  async content(
    record: BranchRecord,
    base: number,
    path: Uint8Array,
    limit: number,
    reader: Requester | null,
  ): Promise<ContentPair> {
    const mount = layerMounts(record, this.#store.directory(record.id))[base]
    if (mount === undefined)
      throw new PuzzledError('usage', `Branch ${record.id} has no base ${base}`, { data: { base } })
    return readBothSides(mount, path, limit, reader)
  }
}

/** The layers of each base, topmost first, and what its root was at the fork. */
export function diffJob(record: BranchRecord, directory: string): DiffJob {
  const mounts = layerMounts(record, directory)
  return {
    bases: record.bases.map(({ path, dev, filesystemId }, index) => {
      const { mode, uid, gid, xattrs } = forkedRoot(directory, index)
      const mount = mounts[index]
      const uppers = mount === undefined ? [] : [mount.upper, ...mount.lowers.slice(0, -1)]
      return { path, ...filesystemMark(dev, filesystemId), uppers, forked: { mode, uid, gid, xattrs } }
    }),
  }
}

/** What the diff says, put together. */
class Gathered {
  readonly #job: DiffJob
  readonly #changes: Change[] = []
  readonly #onProgress: DiffOptions['onProgress']

  constructor(job: DiffJob, { onProgress }: DiffOptions) {
    this.#job = job
    this.#onProgress = onProgress
  }

  /** The changeset with the last message; throws what the diff threw. */
  take(message: DiffMessage): Changeset | undefined {
    switch (message.kind) {
      case 'progress':
        this.#onProgress?.(message.paths)
        return undefined
      case 'changes':
        for (const change of packedChanges(message.bytes)) this.#changes.push(change)
        return undefined
      case 'failed': {
        const { code, message: text, hint, data } = message.error
        const more = { ...(hint === undefined ? {} : { hint }), ...facts(data) }
        throw new PuzzledError(code as ErrorCode, text, more)
      }
      default: {
        const bases = this.#job.bases.map((base) => base.path)
        const { totals, digest } = message
        return { version: 1, bases, changes: this.#changes, requests: [], totals, digest }
      }
    }
  }
}

/**
 * Nothing is in the layers, and nobody can put anything there while the branch is judged: what is left is to compare the
 * roots, and a thread takes much longer to start. With many names in them the layers are not even listed here.
 */
const isUntouched = ({ state }: BranchRecord, { bases }: DiffJob): boolean =>
  state === 'reviewing' && bases.every(({ uppers }) => uppers.every(isEmpty))

function isEmpty(path: string): boolean {
  try {
    const directory = opendirSync(path, { bufferSize: 1 })
    try {
      return directory.readSync() === null
    } finally {
      directory.closeSync()
    }
  } catch {
    // What is wrong with a layer is for the diff to say.
    return false
  }
}

function fromWorker(worker: Worker, gathered: Gathered): Promise<Changeset> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message: DiffMessage) => {
      try {
        const changeset = gathered.take(message)
        if (changeset !== undefined) resolve(changeset)
      } catch (error) {
        reject(error)
      }
    })
    worker.on('error', (cause) => reject(new PuzzledError('internal', 'The diff worker failed', { cause })))
    worker.on('exit', (code) => reject(new PuzzledError('internal', `The diff worker ended early (${code})`)))
  })
}

async function onThisThread(job: DiffJob, gathered: Gathered): Promise<Changeset> {
  const { failureOf, runDiff } = await import('./diff-job.ts')
  const { SecondWalker } = await import('./second-walker.ts')
  const second = new SecondWalker()
  let changeset: Changeset | undefined
  try {
    const take = (message: DiffMessage): void => {
      changeset = gathered.take(message)
    }
    runDiff(job, take, second)
  } catch (error) {
    gathered.take(failureOf(error))
  } finally {
    await second.end()
  }
  if (changeset === undefined) throw new PuzzledError('internal', 'The diff came to no end')
  return changeset
}

const facts = (data: unknown): { data?: Record<string, unknown> } =>
  typeof data === 'object' && data !== null ? { data: data as Record<string, unknown> } : {}
